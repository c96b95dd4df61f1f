"""What the configuration says of findings: their severity, the confidence it takes to count, and what is allowed and why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from klaudit.findings import catalogue
from klaudit.findings.selection import Selection, named
from klaudit.gate.step import Gate, PathSettings
from klaudit.model import Finding, Report, Setup, Span, Withheld
from klaudit.policy import CONFIDENCES, Allowed
from klaudit.theory.naming import is_named


def hold(report: Report, gate: Gate) -> Report:
    """Gives findings their severities, and withholds those that are allowed or not certain enough."""
    settings = PathSettings(gate.options, gate.tree.root)
    allowances = _Allowances(gate, report.setups)
    kept: list[Finding] = []
    withheld: list[Withheld] = []
    for each in report.findings:
        found = settings.with_severity(each)
        least = settings.min_confidence(found.span.path)
        if (allowed := allowances.of(found)) is not None:
            withheld.append(Withheld(found, "allowed", allowed.reason, allowed.path or None, allowed.line))
        elif CONFIDENCES.index(found.confidence) > CONFIDENCES.index(least):
            withheld.append(Withheld(found, "confidence", f"below the confidence that counts here ({least})"))
        else:
            kept.append(found)
    return replace(
        report,
        findings=tuple(kept),
        withheld=(*report.withheld, *withheld),
        remarks=(*report.remarks, *allowances.unused()),
    )


class _Allowances:
    def __init__(self, gate: Gate, setups: Sequence[Setup]) -> None:
        self._gate = gate
        self._entries = [
            (entry, None if entry.globs is None else entry.globs.matcher(gate.tree.root))
            for entry in gate.options.allow
        ]
        self._setups: dict[tuple[str, Span], list[Setup]] = {}
        if any(entry.setups for entry in gate.options.allow):
            for setup in setups:
                self._setups.setdefault((setup.path, setup.span), []).append(setup)
        self._used: set[int] = set()

    def of(self, finding: Finding) -> Allowed | None:
        """The first entry that allows a finding."""
        for at, (entry, matches) in enumerate(self._entries):
            if entry.rules and not named(entry.rules, finding.rule, finding.name):
                continue
            if (matches is None or matches(finding.span.path)) and (not entry.setups or self._is_of(entry, finding)):
                self._used.add(at)
                return entry
        return None

    def unused(self) -> list[str]:
        """Entries that allow nothing, where the scan has looked at all that they could be about."""
        return [
            f"{_place(entry)}this `allow` is not needed any more: there is no such finding ({entry.reason})"
            for at, (entry, _) in enumerate(self._entries)
            if at not in self._used and self._was_looked_for(entry)
        ]

    def _was_looked_for(self, entry: Allowed) -> bool:
        gate = self._gate
        home = os.path.realpath(Path(entry.path).parent)
        if gate.options.frameworks or gate.targets.folders != (".",) or home != gate.tree.root:
            return False
        selection = Selection(gate.options, gate.tree.root)
        rules = [(rule, name) for name, rule in catalogue.names().items() if named(entry.rules, rule, name)]
        return not entry.rules or any(selection.wants(rule, name, "") for rule, name in rules)

    def _is_of(self, entry: Allowed, finding: Finding) -> bool:
        """Whether the finding is about a set-up of a name that the entry has; all that stand there must be."""
        launch = finding.launch or finding.span
        setups = self._setups.get((launch.path, launch), [])
        return bool(setups) and all(any(is_named(setup, name) for name in entry.setups) for setup in setups)


def _place(entry: Allowed) -> str:
    if not entry.path:
        return ""
    return f"{entry.path}:{entry.line}: " if entry.line else f"{entry.path}: "
