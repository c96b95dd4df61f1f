"""What the configuration says of findings: their severity, the confidence it takes to count, and what is allowed and why."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from klaudit.findings import catalogue
from klaudit.findings.selection import Selection, named
from klaudit.gate.allowances import Allowances, place_of
from klaudit.gate.step import Gate, PathSettings
from klaudit.model import Finding, Report, Withheld
from klaudit.policy import CONFIDENCES, Allowed


def hold(report: Report, gate: Gate) -> Report:
    """Gives findings their severities, and withholds those that are allowed or not certain enough."""
    settings = PathSettings(gate.options, gate.tree.root)
    allowances = Allowances(gate.options, gate.tree.root, report.setups)
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
        remarks=(*report.remarks, *_unused(allowances, gate)),
    )


def _unused(allowances: Allowances, gate: Gate) -> list[str]:
    """Entries that allow nothing, where the scan has looked at all that they could be about."""
    return [
        f"{place_of(entry)}: this `allow` is not needed any more: there is no such finding ({entry.reason})"
        for entry in gate.options.allow
        if entry not in allowances.used and _was_looked_for(entry, gate)
    ]


def _was_looked_for(entry: Allowed, gate: Gate) -> bool:
    home = os.path.realpath(Path(entry.path).parent)
    if gate.options.frameworks or gate.targets.folders != (".",) or home != gate.tree.root:
        return False
    selection = Selection(gate.options, gate.tree.root)
    rules = [(rule, name) for name, rule in catalogue.names().items() if named(entry.rules, rule, name)]
    return not entry.rules or any(selection.wants(rule, name, "") for rule, name in rules)
