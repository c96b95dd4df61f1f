"""SARIF 2.1.0 (OASIS), as code scanning on GitHub and editors read it, within the limits of the former."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from klaudit import __version__
from klaudit.model import Problem, Report, Withheld
from klaudit.reports.json_text import Json, dumps
from klaudit.reports.links import DOCUMENTATION
from klaudit.reports.places import repository_path
from klaudit.reports.ranking import most_severe_first
from klaudit.reports.sarif_results import ROOT, Results, artifact
from klaudit.reports.sarif_rules import Rules
from klaudit.reports.view import View
from klaudit.reports.withheld import withheld_in_words
from klaudit.reports.wording import counted, prose

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST_RESULTS = 25_000  # GitHub refuses more, and shows 5,000
MOST_BYTES = 10_000_000  # compressed
_ROOM_FOR_THE_END = 100_000  # compressed: notifications, of which no more than these are written
_MOST_NOTIFICATIONS = 1_000
_MEASURED_EVERY = 100  # results
_SEMANTIC_VERSION = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def render(report: Report, view: View) -> Iterator[str]:
    """One run.  Results come most severe first, and as many of them as GitHub takes; a notification says how many were left out.

    Suppressed and allowed findings are results with `suppressions` where everything is asked for (`verbose`): GitHub would show them
    as open alerts.
    """
    asked = [each for each in report.withheld if view.verbose and each.by in ("suppression", "allowed")]
    findings = [*report.findings, *(each.finding for each in asked)]
    rules = Rules(findings)
    size = _Size()
    yield size.of(f'{{\n  "$schema": {dumps(SCHEMA)},\n  "version": "2.1.0",\n  "runs": [{{\n')
    yield size.of(f'    "tool": {dumps(_tool(rules))},\n')
    yield size.of(f'    "originalUriBaseIds": {dumps({ROOT: {"description": {"text": _ROOT_IS}}})},\n')
    yield size.of('    "columnKind": "utf16CodeUnits",\n    "results": [')
    written, most = 0, MOST_BYTES * 9 // 10 - _ROOM_FOR_THE_END
    for row in _rows(report, asked, Results(findings, rules, view)):
        if written == MOST_RESULTS or (written % _MEASURED_EVERY == 0 and size.measured() > most):
            break
        yield size.of(("," if written else "") + "\n      " + dumps(row))
        written += 1
    yield "\n    ],\n" if written else "],\n"
    yield f'    "invocations": [{dumps(_invocation(report, len(findings) - written, view))}]\n  }}]\n}}\n'


_ROOT_IS = "The root of the repository, or of what was scanned where that lies in none"


def _rows(report: Report, asked: list[Withheld], results: Results) -> Iterator[Json]:
    for finding in most_severe_first(report.findings):
        yield results.row(finding)
    for withheld in asked:
        yield results.row(withheld.finding, withheld)


def _tool(rules: Rules) -> Json:
    driver: dict[str, Json] = {
        "name": "klaudit",
        "version": __version__,
        "rules": rules.rows,
        "notifications": [
            {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
            for name, (level, text) in _NOTIFICATIONS.items()
        ],
    }
    if DOCUMENTATION:
        driver["informationUri"] = DOCUMENTATION
    if _SEMANTIC_VERSION.fullmatch(__version__):
        driver["semanticVersion"] = __version__
    return {"driver": driver}


# --- what happened besides ----------------------------------------------------------------------------------------------------------

_NOTIFICATIONS = {
    "unreadable": ("error", "A file could not be scanned"),
    "left-out": ("warning", "There are more results than are written"),
    "remark": ("note", "Something to know of this scan"),
}


def _invocation(report: Report, left_out: int, view: View) -> Json:
    notifications: list[Json] = []
    if left_out:
        text = f"{counted(left_out, 'further finding')}, none of them more severe, left out: GitHub takes no more. --select asks for fewer."
        notifications.append(_notification("left-out", text))
    notifications += [_unreadable(problem, view) for problem in report.errors[:_MOST_NOTIFICATIONS]]
    remarks = [*report.remarks[:_MOST_NOTIFICATIONS], withheld_in_words(report)]
    notifications += [_notification("remark", prose(remark)) for remark in remarks if remark]
    return {"executionSuccessful": not report.errors, "toolExecutionNotifications": notifications}


def _unreadable(problem: Problem, view: View) -> Json:
    row = _notification("unreadable", f"{view.path(problem.path)}: {prose(problem.message)}")
    path = repository_path(problem.path, view)
    if path is not None and problem.path not in ("", '""'):
        where: dict[str, Json] = {"artifactLocation": artifact(path)}
        if problem.line is not None:
            where["region"] = {"startLine": problem.line}
        row["locations"] = [{"physicalLocation": where}]
    return row


def _notification(name: str, text: str) -> dict[str, Json]:
    level, _ = _NOTIFICATIONS[name]
    return {
        "descriptor": {"id": name, "index": [*_NOTIFICATIONS].index(name)},
        "level": level,
        "message": {"text": text},
    }


class _Size:
    """How large the report so far is when compressed."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(wbits=31)
        self._bytes = 0

    def of(self, piece: str) -> str:
        self._bytes += len(self._compressor.compress(piece.encode("ascii")))
        return piece

    def measured(self) -> int:
        self._bytes += len(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        return self._bytes
