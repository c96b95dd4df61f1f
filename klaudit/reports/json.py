"""The report for programs, `klaudit-report/1` (schema: rules/schema/report.json), written row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice

from klaudit import __version__
from klaudit.model import (
    Edit,
    Evidence,
    Finding,
    FrameworkVersion,
    Problem,
    Report,
    Setup,
    Span,
    Term,
    Unknown,
    Value,
    Withheld,
)
from klaudit.reports.json_text import Json, dumps, whole
from klaudit.reports.view import View
from klaudit.reports.withheld import counts

FORMAT = "klaudit-report/1"
SETUPS_FORMAT = "klaudit-setups/1"

_LONGEST_TEXT = 10_000  # characters; a value may be a whole file
_LONGEST_LIST = 1_000
_DEEPEST = 20
_LARGEST_INT = 2**63  # what readers of JSON can be expected to hold


def render(report: Report, view: View) -> Iterator[str]:
    """Pieces of one JSON text; every row of a list stands on a line of its own, so that reports can be compared line by line."""
    summary: Json = {
        "files_seen": report.files_seen,
        "files_parsed": report.files_parsed,
        "setups": len(report.setups),
        "findings": len(report.findings),
        "by_rule": {rule: report.by_rule[rule] for rule in sorted(report.by_rule)},
        "withheld": dict(counts(report)),
        "errors": len(report.errors),
        "seconds": round(report.seconds, 3),
    }
    yield from _document(
        {"format": FORMAT, "klaudit": __version__, "summary": summary},
        {
            "setups": map(_setup, report.setups),
            "findings": map(_finding, report.findings),
            "withheld": map(_withheld, report.withheld),
            "errors": map(_problem, report.errors),
            "remarks": map(_text, report.remarks),
        },
    )


def render_setups(report: Report) -> Iterator[str]:
    """Only the set-ups, and the files that could not be read, as `klaudit-setups/1`."""
    rows = {"setups": map(_setup, report.setups), "errors": map(_problem, report.errors)}
    yield from _document({"format": SETUPS_FORMAT, "klaudit": __version__}, rows)


def _document(head: Mapping[str, Json], lists: Mapping[str, Iterator[Json]]) -> Iterator[str]:
    yield "{"
    for key, value in head.items():
        yield f"\n  {dumps(key)}: {dumps(value)},"
    for at, (key, rows) in enumerate(lists.items()):
        yield ("," if at else "") + f"\n  {dumps(key)}: ["
        is_empty = True
        for row in rows:
            yield ("" if is_empty else ",") + "\n    " + dumps(row)
            is_empty = False
        yield "]" if is_empty else "\n  ]"
    yield "\n}\n"


# --- rows ---------------------------------------------------------------------------------------------------------------------------


def _setup(setup: Setup) -> Json:
    return {
        "path": _text(setup.path),
        "line": setup.span.line,
        "column": setup.span.column,
        "cell": setup.span.cell,
        "kind": setup.kind,
        "framework": _text(setup.framework),
        "framework_version": _version(setup.version),
        "entry_point": _text(setup.entry_point),
        "algorithm": _text(setup.algorithm),
        "symbol": _text(setup.symbol),
        "assumes": [_text(condition) for condition in setup.assumes],
        "score_weight": _text(setup.score_weight),
        "verdict": setup.verdict,
        "terms": [_term(term) for term in setup.terms],
    }


def _version(version: FrameworkVersion) -> Json:
    return {
        "value": _text(version.value),
        "source": version.source,
        "allowed": _text(version.allowed),
        "path": _text_or_none(version.path),
        "line": version.line,
    }


def _term(term: Term) -> Json:
    return {
        "placement": term.placement,
        "estimator": term.estimator,
        "gradient": term.gradient,
        "coefficient": _finite(term.coefficient),
        "active": term.active,
        "score_weight": _text(term.score_weight),
        "verdict": term.verdict,
        "normalised_by_group_std": term.normalised_by_group_std,
        "why_inactive": _text(term.why_inactive),
        "facts": [_text(fact) for fact in term.facts],
        "evidence": [_evidence(each) for each in term.evidence],
    }


def _evidence(evidence: Evidence) -> Json:
    row: dict[str, Json] = {
        "setting": _text(evidence.setting),
        "value": _value(evidence.value, 0),
        "origin": evidence.origin,
        "path": _text_or_none(evidence.path),
        "line": evidence.line,
        "note": _text(evidence.note),
    }
    if isinstance(evidence.value, Unknown):
        row["unknown"] = [_text(name) for name in evidence.value.hangs_on]
    return row


def _finding(finding: Finding) -> Json:
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        **_place(finding.span),
        "message": _text(finding.message),
        "why": _text(finding.why),
        "fix": {
            "safety": finding.fix.safety,
            "title": _text(finding.fix.title),
            "edits": [_edit(edit) for edit in finding.fix.edits],
        },
        "fingerprint": _text(finding.fingerprint),
        "related": [_evidence(each) for each in finding.related],
    }


def _withheld(withheld: Withheld) -> Json:
    return {
        "by": withheld.by,
        "reason": _text(withheld.reason),
        "path": _text_or_none(withheld.path),
        "line": withheld.line,
        "finding": _finding(withheld.finding),
    }


def _place(span: Span) -> dict[str, Json]:
    return {
        "path": _text(span.path),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "cell": span.cell,
    }


def _edit(edit: Edit) -> Json:
    # never cut: an edit is applied as it stands
    return {"path": whole(edit.path), "start": edit.start, "end": edit.end, "replacement": whole(edit.replacement)}


def _problem(problem: Problem) -> Json:
    return {"path": _text(problem.path), "line": problem.line, "message": _text(problem.message)}


# --- values -------------------------------------------------------------------------------------------------------------------------


def _value(value: Value, depth: int) -> Json:
    """A setting's value; what JSON has no word for (infinity, not a number) as text, and an unknown one as null."""
    if isinstance(value, Unknown):
        return None
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -_LARGEST_INT <= value < _LARGEST_INT else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= _DEEPEST:
        return "..."
    if isinstance(value, dict):
        return {_text(str(key)): _value(item, depth + 1) for key, item in islice(value.items(), _LONGEST_LIST)}
    return [_value(item, depth + 1) for item in islice(value, _LONGEST_LIST)]


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _text(text: str) -> str:
    return whole(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "...")


def _text_or_none(text: str | None) -> str | None:
    return None if text is None else _text(text)
