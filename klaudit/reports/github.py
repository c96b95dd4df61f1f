"""Workflow commands of GitHub Actions: each becomes an annotation beside its line in a pull request.

Of each kind GitHub shows ten a step and drops the others without a word: they go to the log as plain lines, and a notice says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from klaudit.model import Finding, Problem, Report, Severity
from klaudit.reports.layout import paint
from klaudit.reports.places import region, repository_path
from klaudit.reports.ranking import SEVERITIES, most_severe_first
from klaudit.reports.text import head, outcome, problems
from klaudit.reports.view import View
from klaudit.reports.visible import cut, visible
from klaudit.reports.withheld import withheld_in_words
from klaudit.reports.wording import counted, prose

Kind: TypeAlias = Literal["error", "warning", "notice"]

MOST = 10  # of each kind, a step
_LONGEST = 4_000  # characters; the runner cuts messages after 4,096
_KINDS: dict[Severity, Kind] = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, view: View) -> Iterator[str]:
    findings = most_severe_first(report.findings)
    shown: list[Finding] = []
    hidden: list[Finding] = []
    for severity in SEVERITIES:
        alike = [finding for finding in findings if finding.severity == severity]
        most = MOST - _taken(report, severity, len(alike))
        shown += alike[:most]
        hidden += alike[most:]
    room = MOST - sum(finding.severity == "error" for finding in shown)
    yield from (_of_finding(finding, view) for finding in shown)
    yield from (_of_problem(problem, view) for problem in report.errors[:room])
    yield from (command("notice", prose(remark), title="klaudit") for remark in report.remarks[:_MOST_REMARKS])
    lost = report.errors[room:]
    if hidden or lost:
        yield command("notice", _more(hidden, len(lost)), title="klaudit")
        yield command("group", "klaudit: what is not shown as an annotation")
        yield from paint((head(finding, view) for finding in hidden), colour=False)
        yield from paint(problems(lost, view), colour=False)
        yield command("endgroup", "")
    told = ". ".join(part for part in (outcome(report), withheld_in_words(report)) if part)
    yield from paint([((visible(told), "plain"),)], colour=False)


_MOST_REMARKS = 3


def _taken(report: Report, severity: Severity, findings: int) -> int:
    """How many places of a kind are kept for what is no finding: one error for files that could not be read, so that a wall of
    findings does not hide them; notices for remarks and for the word that there is more."""
    if severity == "error":
        return int(bool(report.errors) and findings >= MOST)
    return min(len(report.remarks), _MOST_REMARKS) + 1 if severity == "note" else 0


def _of_finding(finding: Finding, view: View) -> str:
    span = finding.span
    place = region(span, view.source(span.path))
    cell = "" if span.cell is None else f" (cell {span.cell + 1})"
    text = prose(finding.message)
    if finding.confidence != "high":
        text += f" (confidence: {finding.confidence})"
    if finding.fix.title:
        text += f"\nTo mend it: {prose(finding.fix.title)}"
    return command(
        _KINDS[finding.severity],
        f"{text}\nklaudit explain {finding.rule} says why.",
        file=visible(repository_path(span.path, view) or span.path),
        line=str(place.line),
        endLine=str(place.end_line),
        col=str(place.column),
        endColumn=str(place.end_column),
        title=f"{finding.rule} {finding.name}{cell}",
    )


def _of_problem(problem: Problem, view: View) -> str:
    path = repository_path(problem.path, view)
    where = {} if path is None or problem.path in ("", '""') else {"file": visible(path)}
    if where and problem.line is not None:
        where["line"] = str(problem.line)
    text = prose(problem.message.partition("\n")[0])
    return command("error", f"{view.path(problem.path)}: {text}", **where, title="klaudit: not scanned")


def _more(hidden: list[Finding], errors: int) -> str:
    counts = [(severity, sum(finding.severity == severity for finding in hidden)) for severity in SEVERITIES]
    kinds = ", ".join(counted(count, severity) for severity, count in counts if count)
    parts = [f"{counted(len(hidden), 'more finding')} ({kinds})"] if hidden else []
    if errors:
        parts.append(f"{counted(errors, 'more file')} that could not be scanned")
    return f"{' and '.join(parts)}: GitHub shows {MOST} annotations of a kind. The log of this step lists all."


# --- commands -----------------------------------------------------------------------------------------------------------------------


def command(name: str, message: str, **properties: str) -> str:
    """One line, `::name key=value,...::message`, of which nothing can break out."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{name}{' ' if given else ''}{given}::{_data(cut(message, _LONGEST))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
