#!/usr/bin/env python3
"""Checks rules/frameworks/*.yaml against the released source of the frameworks.  For maintainers; needs pip, the network and hydra-core.

    python tools/check_rules.py verl                          all releases that the file lists
    python tools/check_rules.py verl trl --release 0.9.1      some of them; --new also those that the index has and the file lacks
    python tools/check_rules.py easyr1 --tree 0.3.2=PATH      a checked-out tree as the given version (frameworks without releases)
    options: --verbose (every row), --extend (append newer releases to `releases:`), --cache FOLDER

Prints, per fact, in which releases it agrees, disagrees or could not be checked.  Exit status 1 when anything disagrees.
Nothing of a release is imported or run: Python is parsed, YAML configs are composed by Hydra.

Where it looks:
  - YAML defaults: the `folder`/`config` of each entry point, and the other primary configs that defaults name in `config:`;
  - `source-defaults` of the trainer: {kind: dataclass | arguments, path, symbol, prefix, versions}.  Dataclasses include their bases
    and, dotted, the dataclasses their fields hold; `arguments` are the add_argument calls of a module, function or class;
  - a setting's own `checked-in` list instead of both, where one of its entries is for the release:
        {kind: yaml | dataclass | arguments, path, versions, symbol, prefix, key}
    where `prefix` is what the name has before the name there, and `key` a name there of its own;
  - a vocabulary's `checked-in`: {kind: words, path, symbol, key, suffixes}: the words are the text constants that the function
    compares with (only comparisons with the name or key `key`, if given); {suffixes: ["+"]} allows spelt words with that ending;
  - any fact's `checked-in`: {kind: text, path, symbol, contains, lacks}: the file, or that function or class of it, has or has not a text.
Where the rules have no default, a null one or one that is `fixed`, the name may be absent.  Choices and Literal types are compared
with `choices` or the vocabulary, store_true flags with `type: switch`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from checking import releases
from checking.compare import Row, check_release
from packaging.version import InvalidVersion, Version

from klaudit.frameworks.load import RulesError, load_framework, shipped_rules
from klaudit.frameworks.rules import Framework

_OUTCOMES = ("disagree", "unchecked", "agree")
_MARKS = {"agree": "ok", "disagree": "DISAGREE", "unchecked": "?"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 no disagreement, 1 some, 2 wrong usage or unreadable rules."""
    options = _parser().parse_args(arguments)
    paths = sorted((options.rules / "frameworks").glob("*.yaml"))
    known = {path.stem: path for path in paths}
    unknown = [name for name in options.framework if name not in known]
    if unknown:
        print(f"no rules for {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
    for name in options.framework or known:
        try:
            framework = load_framework(known[name])
            failed |= _check(framework, known[name], options)
        except (RulesError, InvalidVersion) as error:
            print(error, file=sys.stderr)
            return 2
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", nargs="*", help="names of files in rules/frameworks (default: all)")
    parser.add_argument("--release", action="append", default=[], help="only this release (repeatable)")
    parser.add_argument(
        "--tree", action="append", default=[], metavar="VERSION=PATH", help="a source tree as that version"
    )
    parser.add_argument("--new", action="store_true", help="also check releases that the file does not list yet")
    parser.add_argument("--extend", action="store_true", help="append newer releases to the file")
    parser.add_argument("--verbose", action="store_true", help="print what agrees, too")
    parser.add_argument("--rules", type=Path, default=shipped_rules(), help="folder of the rules")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "klaudit-releases"
    parser.add_argument("--cache", type=Path, default=cache, help=f"where unpacked wheels are kept (default: {cache})")
    return parser


def _check(framework: Framework, path: Path, options: argparse.Namespace) -> bool:
    """Prints the table of one framework; whether anything disagrees."""
    print(f"== {framework.title} ({path.name})")
    wanted = list(options.release or ([] if options.tree else framework.release_names))
    if not options.tree:
        wanted += _look_for_new(framework, path, options)
    rows: dict[Row, list[str]] = defaultdict(list)
    for version, root in [*_trees(options.tree), *_wheels(framework, wanted, options.cache)]:
        for row in check_release(framework, Version(version), root):
            rows[row].append(version)
    print(_table(rows, options.verbose))
    return any(row.outcome == "disagree" for row in rows)


def _look_for_new(framework: Framework, path: Path, options: argparse.Namespace) -> list[str]:
    on_index = sorted({each for name in framework.distributions for each in releases.known_releases(name)}, key=Version)
    missing = releases.missing_releases(framework.release_names, on_index)
    if missing:
        print(f"not listed in {path.name}: {', '.join(missing)}")
    if options.extend and (added := releases.extend_releases(path, on_index)):
        print(f"added to {path.name}: {', '.join(added)}")
    return missing if options.new else []


def _trees(given: Sequence[str]) -> list[tuple[str, Path]]:
    return [(version, Path(place)) for version, _, place in (each.partition("=") for each in given)]


def _wheels(framework: Framework, versions: Sequence[str], cache: Path) -> list[tuple[str, Path]]:
    found = []
    for version in versions:
        root = releases.unpack(framework.distributions, version, cache)
        if root is None:
            print(f"no wheel of {version}: not checked")
        else:
            found.append((version, root))
    return found


def _table(rows: dict[Row, list[str]], verbose: bool) -> str:
    """One line per fact and outcome with its releases, and the sums."""
    lines = []
    for row, versions in sorted(rows.items(), key=lambda item: (_OUTCOMES.index(item[0].outcome), item[0].fact)):
        if verbose or row.outcome != "agree":
            lines.append(
                "  ".join(
                    filter(None, [f"{_MARKS[row.outcome]:8}", row.fact, row.where, row.note, f"[{_span(versions)}]"])
                )
            )
    counts = {outcome: sum(len(v) for row, v in rows.items() if row.outcome == outcome) for outcome in _OUTCOMES}
    return "\n".join([*lines, ", ".join(f"{counts[outcome]} {outcome}" for outcome in reversed(_OUTCOMES))])


def _span(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} .. {versions[-1]}: {len(versions)}"


if __name__ == "__main__":
    sys.exit(main())
