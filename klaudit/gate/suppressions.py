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
from klaudit.model import Finding, Fix, Report, Severity, Withheld
from klaudit.policy import SEVERITIES

_MOST_SHOWN = 5  # rules of one comment in a message
_MOST_A_FILE = 1_000
_REMOVAL = "take it out: `klaudit suppress --remove-unused --write` does"


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
    unused = _Unused(report, gate, remaining)
    for path, silencer in silencers.of(gate.marked):
        count = 0
        for suppression in silencer.suppressions:
            more = [
                *_faults(suppression),
                *unused.of(suppression, path),
                *_without_reason(suppression, require=gate.options.require_reasons),
            ]
            count += len(more)
            if count > _MOST_A_FILE:
                message = f"more than {_MOST_A_FILE:,} comments of this file are wrong: the others are left out"
                told.append(_finding("unused-suppression", suppression, message, "warning"))
                break
            told += more
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


def _faults(suppression: Suppression) -> Iterator[Finding]:
    """What is wrong with the comment itself."""
    wrong = [name for name in suppression.directive.names if not name.rule]
    told = [suppression.problem] if suppression.problem else []
    told += [name.problem for name in wrong[:_MOST_SHOWN]]
    if len(wrong) > _MOST_SHOWN:
        told.append(f"{len(wrong) - _MOST_SHOWN:,} more")
    if told:
        is_lost = suppression.problem or not suppression.directive.rules
        what = "suppresses nothing" if is_lost else "suppresses less than it says"
        yield _finding("unused-suppression", suppression, f"this comment {what}: {'; '.join(told)}", "warning")


class _Unused:
    """Says which rules find nothing where a comment holds, as far as this scan can tell."""

    def __init__(self, report: Report, gate: Gate, remaining: _Places) -> None:
        self._is_partial = bool(gate.options.frameworks)
        self._unread = {problem.path for problem in report.errors}
        self._selection = Selection(gate.options, gate.tree.root)
        self._names = {rule: name for name, rule in catalogue.names().items()}
        self._remaining = remaining

    def of(self, suppression: Suppression, path: str) -> Iterator[Finding]:
        if (
            suppression.problem
            or suppression.directive.verb == "ignore-end"
            or self._is_partial
            or path in self._unread
        ):
            return
        unused = [
            rule
            for rule in sorted(suppression.directive.rules - suppression.used)
            if self._selection.wants(rule, self._names[rule], path)
        ]
        if unused:
            shown = ", ".join(unused[:_MOST_SHOWN]) + (", ..." if len(unused) > _MOST_SHOWN else "")
            near = [line for rule in unused for line in self._remaining.get((path, rule), ())]
            hint = ""
            if near:
                hint = f"; the nearest one is on line {min(near, key=lambda line: abs(line - suppression.span.line))}"
            message = f"no {shown} to suppress here{hint}"
            yield _finding("unused-suppression", suppression, message, instead=_REMOVAL)


def _without_reason(suppression: Suppression, *, require: bool) -> Iterator[Finding]:
    directive = suppression.directive
    if directive.reason or suppression.problem or directive.verb == "ignore-end" or not directive.rules:
        return
    severity: Severity | None = None
    if require:
        severity = min(("warning", *(each.severity for each in suppression.suppressed)), key=SEVERITIES.index)
    rules = ", ".join(sorted(directive.rules)[:_MOST_SHOWN])
    message = f"{rules} suppressed without a reason"
    yield _finding("suppression-without-reason", suppression, message, severity, "say why, behind the rules")


def _finding(
    name: str, suppression: Suppression, message: str, severity: Severity | None = None, instead: str = ""
) -> Finding:
    rules = ",".join(each.rule or "?" for each in suppression.directive.names[:_MOST_SHOWN])
    key = f"{suppression.directive.verb}[{rules}]"
    return finding(name, Draft(suppression.span, message, severity=severity, key=key, fix=Fix("none", instead)))
