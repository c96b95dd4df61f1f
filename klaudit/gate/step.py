"""What every step of the gate works with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from klaudit.budget import Budget
from klaudit.configuration import Options
from klaudit.discover import Targets, path_in_repository
from klaudit.findings.judging import give_fingerprints, order_of
from klaudit.findings.selection import Selection
from klaudit.model import Finding, Report
from klaudit.tree import Tree


class Gate(Struct, frozen=True):
    """What the steps may look at.

    `files` are all files of the scan, also those that held no word of interest; `marked` those that hold `klaudit:`.
    """

    tree: Tree
    targets: Targets
    files: Sequence[str]
    options: Options
    marked: Sequence[str] = ()
    budget: Budget = Budget()


def with_findings(report: Report, findings: Iterable[Finding], gate: Gate) -> Report:
    """The report with findings of a step, as far as they are selected, of rules that no other step has."""
    selection = Selection(gate.options, gate.tree.root)
    wanted = sorted((finding for finding in findings if selection.keeps(finding)), key=order_of)
    if not wanted:
        return report
    told = give_fingerprints(wanted, path_in_repository(gate.tree.root))
    return replace(report, findings=tuple(sorted((*report.findings, *told), key=order_of)))
