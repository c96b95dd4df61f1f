"""What every step of the gate works with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from klaudit.budget import Budget
from klaudit.configuration import Options
from klaudit.discover import Targets, path_in_repository
from klaudit.findings.judging import give_fingerprints, order_of
from klaudit.findings.selection import Selection
from klaudit.model import Confidence, Finding, Report
from klaudit.policy import SEVERITIES, FailOn, PerPath
from klaudit.tree import Tree

Judge: TypeAlias = Callable[[Tree, Sequence[str], Sequence[str]], tuple[Report, Sequence[str]]]


class Gate(Struct, frozen=True):
    """What the steps may look at.

    `files` are all files of the scan, also those that held no word of interest; `marked` those that hold `klaudit:`.  `judge` is the
    pipeline before the gate: a tree, the files that have a say and those that are judged -> their report, and the marked ones.
    """

    tree: Tree
    targets: Targets
    files: Sequence[str]
    options: Options
    marked: Sequence[str] = ()
    budget: Budget = Budget()
    judge: Judge | None = None


def with_findings(report: Report, findings: Iterable[Finding], gate: Gate) -> Report:
    """The report with findings of a step, as far as they are selected, of rules that no other step has."""
    selection = Selection(gate.options, gate.tree.root)
    wanted = sorted((finding for finding in findings if selection.keeps(finding)), key=order_of)
    if not wanted:
        return report
    told = give_fingerprints(wanted, path_in_repository(gate.tree.root))
    return replace(report, findings=tuple(sorted((*report.findings, *told), key=order_of)))


class PathSettings:
    """What the configuration says of a path: the rest of the options, overruled by each `per-path` that matches, the last one first."""

    def __init__(self, options: Options, root: str) -> None:
        self._options = options
        self._parts = [(part, part.globs.matcher(root)) for part in reversed(options.per_path)]

    @property
    def requires(self) -> bool:
        """Whether any set-up is required anywhere."""
        return bool(self._options.require) or any(part.require for part, _ in self._parts)

    def required(self, path: str) -> tuple[str, ...]:
        """Names of set-ups of which one is required; empty where none is."""
        own = (part.require for part in self._of(path))
        return next((names for names in own if names is not None), self._options.require)

    def min_confidence(self, path: str) -> Confidence:
        own = (part.min_confidence for part in self._of(path))
        return next((least for least in own if least is not None), self._options.min_confidence)

    def fail_on(self, path: str) -> FailOn:
        own = (part.fail_on for part in self._of(path))
        return next((least for least in own if least is not None), self._options.fail_on)

    def with_severity(self, finding: Finding) -> Finding:
        """The finding with the severity that is configured for its rule, by id or name."""
        if not self._options.severity and not self._parts:
            return finding
        for table in (*(part.severity for part in self._of(finding.span.path)), self._options.severity):
            for rule in (finding.rule, finding.name):
                if rule in table:
                    return replace(finding, severity=table[rule])
        return finding

    def fails(self, finding: Finding) -> bool:
        """Whether a finding that counts makes the scan fail."""
        least = self.fail_on(finding.span.path)
        return least != "never" and SEVERITIES.index(finding.severity) <= SEVERITIES.index(least)

    def _of(self, path: str) -> Iterator[PerPath]:
        return (part for part, matches in self._parts if matches(path))
