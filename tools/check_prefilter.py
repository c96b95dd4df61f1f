"""Scans trees with the prefilter and without it, file by file, and says where the two differ: it must change nothing.

    python tools/check_prefilter.py TREE...

`-` marks what only the scan without it finds, which is lost, and `+` what only the scan with it finds, which is as wrong.  Exit status 1
where there is either.  Takes minutes for a large tree: without the prefilter every function is analysed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from klaudit.configuration import Options
from klaudit.discover import list_files, locate
from klaudit.model import FileResult, Setup
from klaudit.scanner import Scanner
from klaudit.tree import TooLargeError, Tree


def main(trees: Sequence[str]) -> int:
    total = 0
    for tree in trees:
        count = 0
        for path, text in differences(tree):
            print(f"{tree}: {path}: {text}", flush=True)
            count += 1
        print(f"{tree}: {count} differences", flush=True)
        total += count
    return int(total > 0)


def differences(tree: str) -> Iterator[tuple[str, str]]:
    """What only one of the two scans finds, by file."""
    options = Options()
    targets = locate([tree], options)
    files = list_files(targets, options).files
    source = Tree(targets.root)
    filtered, everything = (
        Scanner(source, files, replace(options, prefilter=prefilter)) for prefilter in (True, False)
    )
    for path in files:
        without, with_it = set(_told(everything.scan(path))), set(_told(_scan(filtered, path)))
        yield from ((path, f"- {text}") for text in sorted(without - with_it))
        yield from ((path, f"+ {text}") for text in sorted(with_it - without))
        source.forget(path)


def _scan(scanner: Scanner, path: str) -> FileResult:
    try:
        source = scanner.tree.source(path)
    except (OSError, TooLargeError):
        source = None
    matters = source is not None and scanner.may_matter(path, source.data)
    return scanner.scan(path) if matters else FileResult(path)


def _told(result: FileResult) -> Iterable[str]:
    """Findings, and set-ups that train with a penalty, as lines."""
    for finding in result.findings:
        yield f"{finding.span.line} {finding.rule} {finding.message}"
    for setup in filter(_trains, result.setups):
        yield f"{setup.span.line} {setup.kind} {setup.framework} {setup.score_weight} {setup.verdict}"


def _trains(setup: Setup) -> bool:
    return any(term.placement != "metric" and term.active is not False for term in setup.terms)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
