"""GitLab's Code Quality report: one row a finding, with what GitLab asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from klaudit.model import Finding, Problem, Report, Severity
from klaudit.reports.json_text import Json, dumps, whole
from klaudit.reports.places import region, repository_path
from klaudit.reports.ranking import most_severe_first
from klaudit.reports.view import View
from klaudit.reports.wording import prose

_SEVERITIES: dict[Severity, str] = {"error": "critical", "warning": "major", "note": "info"}


def render(report: Report, view: View) -> Iterator[str]:
    """A JSON list, also where there is nothing to report.  Files that could not be read are rows as well: the job fails for them."""
    seen: set[str] = set()
    rows = [
        *(_finding(finding, view, seen) for finding in most_severe_first(report.findings)),
        *(_problem(problem, view, seen) for problem in report.errors if problem.path not in ("", '""')),
    ]
    yield "["
    for at, row in enumerate(rows):
        yield ("," if at else "") + "\n  " + dumps(row)
    yield "\n]\n" if rows else "]\n"


def _finding(finding: Finding, view: View, seen: set[str]) -> Json:
    span = finding.span
    told = prose(finding.message)
    if finding.fix.title:
        told = f"{told.rstrip('.')}. To mend it: {prose(finding.fix.title)}"
    return _row(
        told,
        f"{finding.rule} {finding.name}",
        _unique(finding.fingerprint or f"{finding.rule}\0{span.path}\0{finding.message}", seen),
        _SEVERITIES[finding.severity],
        repository_path(span.path, view) or span.path,
        region(span, view.source(span.path)).line,
    )


def _problem(problem: Problem, view: View, seen: set[str]) -> Json:
    text = f"Not scanned: {prose(problem.message.partition(chr(10))[0])}"
    key = _unique(f"unreadable\0{problem.path}\0{problem.message}", seen)
    path = repository_path(problem.path, view) or problem.path
    return _row(text, "not-scanned", key, "major", path, problem.line or 1)


def _row(description: str, name: str, fingerprint: str, severity: str, path: str, line: int) -> Json:
    return {
        "description": description,
        "check_name": name,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": whole(path), "lines": {"begin": line}},
    }


def _unique(key: str, seen: set[str]) -> str:
    """GitLab takes rows of one fingerprint for one row; the second of a key gets another."""
    salt = 0
    while True:
        text = f"{key}\0{salt}" if salt else key
        fingerprint = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if fingerprint not in seen:
            seen.add(fingerprint)
            return fingerprint
        salt += 1
