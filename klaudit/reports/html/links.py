"""Which findings speak of which set-ups: a launch has a set-up for each way through its file, and its findings fit some of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from klaudit.model import Evidence, Finding, Report, Setup

_Trace: TypeAlias = tuple[str, str | None, int | None]


class Links(Struct, frozen=True):
    """Indices into a report's lists, both ways."""

    setups: Sequence[tuple[int, ...]]
    findings: Mapping[int, tuple[int, ...]]


def links(report: Report) -> Links:
    by_path: dict[str, list[int]] = defaultdict(list)
    for at, setup in enumerate(report.setups):
        by_path[setup.path].append(at)
    traces = [frozenset(_traces(setup)) for setup in report.setups]
    of_findings = [
        _about(finding, by_path.get(finding.span.path, []), report.setups, traces) for finding in report.findings
    ]
    of_setups: dict[int, list[int]] = defaultdict(list)
    for at, setups in enumerate(of_findings):
        for setup_at in setups:
            of_setups[setup_at].append(at)
    return Links(of_findings, {at: tuple(findings) for at, findings in of_setups.items()})


def _about(
    finding: Finding, near: Sequence[int], setups: Sequence[Setup], traces: Sequence[frozenset[_Trace]]
) -> tuple[int, ...]:
    """Those that the finding names; of a file's others those that share most of its evidence, or whose text holds it."""
    if finding.launch is not None:
        near = [at for at in near if setups[at].span == finding.launch] or near
    told = set(map(_trace, finding.related))
    shared = {at: len(told & traces[at]) for at in near}
    most = max(shared.values(), default=0)
    if most:
        return tuple(at for at in near if shared[at] == most)
    if finding.launch is not None:
        return tuple(at for at in near if setups[at].span == finding.launch)
    if len(near) == 1:
        return tuple(near)
    start, end = finding.span.start, finding.span.end
    return tuple(at for at in near if setups[at].span.start <= start and end <= setups[at].span.end)


def _traces(setup: Setup) -> list[_Trace]:
    return [_trace(each) for term in setup.terms for each in term.evidence]


def _trace(evidence: Evidence) -> _Trace:
    return (evidence.setting, evidence.path, evidence.line)
