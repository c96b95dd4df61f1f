"""Findings that comments suppress are withheld; comments that suppress nothing, or do not say why, are findings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from klaudit.findings import catalogue
from klaudit.findings.judging import Draft, finding
from klaudit.findings.selection import Selection
from klaudit.gate.silencers import Silencers
from klaudit.gate.silencing import Suppression
from klaudit.gate.step import Gate, with_findings
from klaudit.model import Finding, Report, Severity, Withheld
from klaudit.policy import SEVERITIES

_MOST_SHOWN = 5  # rules of one comment in a message


def hold(report: Report, gate: Gate) -> Report:
    """Withholds what comments suppress, and adds what is to be said of the comments (KLA001, KLA002)."""
    if not gate.options.suppressions:
        return report
    silencers = Silencers(gate.tree)
    kept: list[Finding] = []
    withheld: list[Withheld] = []
    for each in report.findings:
        found = silencers.suppressing(each)
        if not found:
            kept.append(each)
            continue
        for suppression in found:
            suppression.used.add(each.rule)
            suppression.suppressed.append(each)
        withheld.append(_withheld(each, found))
    told: list[Finding] = []
    remaining = _by_place(kept)
    for path, silencer in silencers.of(gate.marked):
        for suppression in silencer.suppressions:
            told += _faults(suppression, remaining)
            told += _unused(suppression, path, report, gate, remaining)
            told += _without_reason(suppression, require=gate.options.require_reasons)
    report = replace(report, findings=tuple(kept), withheld=(*report.withheld, *withheld))
    return with_findings(report, told, gate)


def _withheld(each: Finding, found: list[Suppression]) -> Withheld:
    told = next((suppression for suppression in found if suppression.directive.reason), found[0])
    return Withheld(each, "suppression", told.directive.reason, told.span.path, told.span.line)


# --- what is said of the comments ----------------------------------------------------------------------------------------------------

_Places = Mapping[tuple[str, str], list[int]]


def _by_place(findings: Iterable[Finding]) -> _Places:
    """Lines of the findings that are left, by path and rule."""
    places: dict[tuple[str, str], list[int]] = {}
    for each in findings:
        places.setdefault((each.span.path, each.rule), []).append(each.span.line)
    return places


def _faults(suppression: Suppression, remaining: _Places) -> Iterator[Finding]:
    """What is wrong with the comment itself."""
    directive, told = suppression.directive, []
    if suppression.problem:
        told.append(suppression.problem)
    problems = [name.problem for name in directive.names if name.problem]
    told += problems[:_MOST_SHOWN]
    if len(problems) > _MOST_SHOWN:
        told.append(f"{len(problems) - _MOST_SHOWN:,} more rules that are none")
    if told:
        nothing = "suppresses nothing" if suppression.problem or not directive.rules else "suppresses less than it says"
        yield _finding("unused-suppression", suppression, f"this comment {nothing}: {'; '.join(told)}", "warning")


def _unused(suppression: Suppression, path: str, report: Report, gate: Gate, remaining: _Places) -> Iterator[Finding]:
    """Rules that find nothing where the comment holds, as far as this scan can tell."""
    if suppression.problem or suppression.directive.verb == "ignore-end" or gate.options.frameworks:
        return
    if any(problem.path == path for problem in report.errors):
        return
    selection, by_id = Selection(gate.options, gate.tree.root), {id: name for name, id in catalogue.names().items()}
    unused = [
        rule
        for rule in sorted(suppression.directive.rules - suppression.used)
        if selection.wants(rule, by_id[rule], path)
    ]
    if unused:
        shown = ", ".join(unused[:_MOST_SHOWN]) + (", ..." if len(unused) > _MOST_SHOWN else "")
        near = [line for rule in unused for line in remaining.get((path, rule), ())]
        hint = ""
        if near:
            hint = f"; the nearest one is on line {min(near, key=lambda line: abs(line - suppression.span.line))}"
        yield _finding("unused-suppression", suppression, f"no {shown} to suppress here{hint}")


def _without_reason(suppression: Suppression, *, require: bool) -> Iterator[Finding]:
    directive = suppression.directive
    if directive.reason or suppression.problem or directive.verb == "ignore-end" or not directive.rules:
        return
    severity: Severity | None = None
    if require:
        severity = min(("warning", *(each.severity for each in suppression.suppressed)), key=SEVERITIES.index)
    rules = ", ".join(sorted(directive.rules)[:_MOST_SHOWN])
    yield _finding("suppression-without-reason", suppression, f"{rules} suppressed without a reason", severity)


def _finding(name: str, suppression: Suppression, message: str, severity: Severity | None = None) -> Finding:
    rules = ",".join(each.rule or "?" for each in suppression.directive.names[:_MOST_SHOWN])
    key = f"{suppression.directive.verb}[{rules}]"
    return finding(name, Draft(suppression.span, message, severity=severity, key=key))
