"""Fixes a copy of a tree and prints, as Markdown, what every launch trains with before and after."""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.fix.frameworks import MEASURED, Measured
from benchmarks.fix.launches import Launched
from benchmarks.fix.recorder import record
from benchmarks.fix.soundness import changed_keys, faults
from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.fixes.migration import Plan, Request
from klaudit.fixes.planning import plan
from klaudit.fixes.writing import write_all


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fix", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("framework", choices=sorted(MEASURED))
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--title", action="append", default=[], help="what to call a tree, e.g. its commit")
    given = parser.parse_args(arguments)
    for at, tree in enumerate(given.trees):
        title = given.title[at] if at < len(given.title) else tree.name
        print(f"## {given.framework} {title}\n")
        for line in measure(MEASURED[given.framework], tree.resolve()):
            print(f"- {line}")
        print()


def measure(measured: Measured, tree: Path) -> list[str]:
    """What is found, a line each."""
    before = measured.programs.launches(tree, record(tree))
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, tree.name)
        shutil.copytree(tree, copy, symlinks=True)
        started, cpu = time.perf_counter(), _cpu()
        made = plan([str(copy)], Options(), Request())
        seconds, cpu = time.perf_counter() - started, _cpu() - cpu
        write_all(made.root, made.originals, made.contents)
        after = measured.programs.launches(copy, record(copy))
        lines = [
            f"{len(before)} launches of {len({each.script for each in before})} scripts; "
            f"{len(made.migrations)} set-ups migrated in {len(made.contents)} files, {len(made.unchanged)} refused "
            f"({seconds:.1f} s, {cpu:.1f} s of CPU)",
            *_reached(measured, made, before, after),
            *_others(measured, made, before, after),
            *_soundness(tree, copy, made),
        ]
        again = plan([str(copy)], Options(), Request())
        lines.append(f"a second run changes {len(again.contents)} files")
        fixed = {(each.path, rule) for each in made.migrations for rule in each.rules}
        refused = {(each.setup.path, rule) for each in again.unchanged for rule in each.rules}
        left = {(each.span.path, each.rule) for each in scan([str(copy)], Options()).findings}
        lines.append(f"findings that were fixed and are still there: {sorted((fixed & left) - refused) or 'none'}")
        return lines


def _reached(measured: Measured, made: Plan, before: Sequence[Launched], after: Sequence[Launched]) -> list[str]:
    """Scripts with k3 in the loss, and those of them whose every such launch now has k1 in the reward with the same coefficient."""
    why: dict[str, str] = {}
    news = _in_order(after)
    for place, old in _in_order(before).items():
        amount = measured.coefficient(old.settings) if old.settings is not None else None
        if amount is None:
            continue
        new = news.get(place)
        if new is None or new.settings is None:
            missed = "it no longer starts" if new is None else new.error
        else:
            missed = measured.missed(new.settings, amount)
        why[old.script] = why.get(old.script) or missed
    good = [script for script, missed in why.items() if not missed]
    reasons = {each.setup.path: each.why for each in made.unchanged}
    share = f" ({100 * len(good) / len(why):.1f} %)" if why else ""
    return [
        f"scripts with k3 in the loss: {len(why)}; now k1 in the reward, same coefficient, no group std: {len(good)}{share}",
        *(
            f"exception: {script}: {missed}; klaudit says: {reasons.get(script, 'nothing')}"
            for script, missed in why.items()
            if missed
        ),
    ]


def _others(measured: Measured, made: Plan, before: Sequence[Launched], after: Sequence[Launched]) -> list[str]:
    """Whether any other setting, or any other launch, is not what it was."""
    migrated = {each.path for each in made.migrations}
    lines: list[str] = []
    compared: Counter[str] = Counter()
    news = _in_order(after)
    for place, old in _in_order(before).items():
        new = news.get(place)
        if new is None or (old.settings is None) != (new.settings is None):
            lines.append(f"CHANGED: {old.script}: {new.error if new is not None else 'no longer starts'} ({old.error})")
            continue
        if old.settings is None or new.settings is None:
            compared["refused before and after"] += 1
            continue
        names = {name for name in {*old.settings, *new.settings} if _differs(old.settings, new.settings, name)}
        compared["unchanged" if not names else "changed as intended"] += 1
        if wrong := names if old.script not in migrated else names - measured.may_change:
            lines.append(f"CHANGED: {old.script}: {', '.join(sorted(wrong))}")
    if len(after) != len(before):
        lines.append(f"CHANGED: {len(before)} launches before, {len(after)} after")
    told = ", ".join(f"{count} {what}" for what, count in sorted(compared.items()))
    return [f"all settings of every launch compared: {told}; settings that differ and should not: {len(lines)}", *lines]


def _differs(old: Mapping[str, object], new: Mapping[str, object], name: str) -> bool:
    return name not in old or name not in new or repr(old[name]) != repr(new[name])


def _soundness(tree: Path, copy: Path, made: Plan) -> list[str]:
    wrong = faults(tree, copy, made.contents)
    kinds = Counter(path.rpartition(".")[2] for path in made.contents)
    told = ", ".join(f"{count} .{suffix}" for suffix, count in sorted(kinds.items()))
    data = [path for path in made.contents if path.endswith((".yaml", ".yml", ".json", ".toml"))]
    return [
        f"edited files that no longer parse, of {told}: {len(wrong)}",
        *wrong,
        *(f"keys of {path}: {', '.join(sorted(changed_keys(tree, copy, path)))}" for path in data),
    ]


def _in_order(launches: Sequence[Launched]) -> dict[tuple[str, int], Launched]:
    """By script and place among its launches."""
    counts: Counter[str] = Counter()
    found: dict[tuple[str, int], Launched] = {}
    for each in launches:
        found[each.script, counts[each.script]] = each
        counts[each.script] += 1
    return found


def _cpu() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


if __name__ == "__main__":
    main()
