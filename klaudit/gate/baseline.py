"""Findings that are listed in a file do not count; one more of the same kind does."""

from __future__ import annotations

import os
from pathlib import PurePath

from msgspec.structs import replace

from klaudit.gate.remarks import MOST, few
from klaudit.gate.step import Gate
from klaudit.model import Report, Withheld


def hold(report: Report, gate: Gate) -> Report:
    """Raises BaselineError for a baseline that cannot be used."""
    file = gate.options.baseline
    if file is None:
        return report
    from klaudit.gate.baseline_file import read  # most scans have no baseline
    from klaudit.gate.comparison import compare

    found = compare(report, gate, read(file), file)
    name = _shown(file, gate.targets.root)
    listed = set(map(id, found.listed))
    moved = [f"{new} is taken for {old}, which {name} lists" for new, old in sorted(found.moved.items())]
    remarks = few(moved, "renamed files")
    if found.stale:
        count = sum(row.count for row in found.stale)
        rows = ", ".join(f"{row.path} ({row.rule})" for row in found.stale[:MOST])
        rest = ", ..." if len(found.stale) > MOST else ""
        are = "findings that are" if count != 1 else "finding that is"
        them = "them" if count != 1 else "it"
        remarks.append(
            f"{name} lists {count} {are} fixed or suppressed: {rows}{rest}; `klaudit baseline prune` takes {them} out"
        )
    return replace(
        report,
        findings=tuple(finding for finding in report.findings if id(finding) not in listed),
        withheld=(*report.withheld, *(Withheld(finding, "baseline", f"listed in {name}") for finding in found.listed)),
        remarks=(*report.remarks, *remarks),
    )


def _shown(file: str, root: str) -> str:
    path = PurePath(os.path.relpath(os.path.realpath(file), root)).as_posix()
    return PurePath(file).name if path.startswith("../") else path
