"""Findings as SARIF results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from klaudit.model import Edit, Evidence, Finding, Fix, Withheld
from klaudit.reports.json_text import Json, whole
from klaudit.reports.line_hashes import line_hashes
from klaudit.reports.places import Region, exact_region, provenance, region, repository_path, uri
from klaudit.reports.sarif_rules import Rules
from klaudit.reports.view import View
from klaudit.reports.visible import visible
from klaudit.reports.wording import is_step, prose, value

ROOT = "%SRCROOT%"  # what code scanning and editors take for the root of the repository
_MOST_RELATED = 20
_LINK = re.compile(r"\](?=\()")


class Results:
    """Results of one report; of each file the lines that matter are hashed once."""

    def __init__(self, findings: Iterable[Finding], rules: Rules, view: View) -> None:
        self._rules = rules
        self._view = view
        self._lines: dict[str, set[int]] = {}
        for finding in findings:
            line = region(finding.span, view.source(finding.span.path)).line
            self._lines.setdefault(finding.span.path, set()).add(line)
        self._hashes: dict[str, dict[int, str]] = {}

    def row(self, finding: Finding, withheld: Withheld | None = None) -> Json:
        related = [each for each in provenance(finding) if self._location(each) is not None][:_MOST_RELATED]
        result: dict[str, Json] = {
            "ruleId": finding.rule,
            "ruleIndex": self._rules.index(finding.rule),
            "level": finding.severity,
            "message": {"text": _message(finding, related)},
            "locations": [self._place(finding)],
            "partialFingerprints": self._fingerprints(finding),
            "properties": {"confidence": finding.confidence},
        }
        if related:
            result["relatedLocations"] = [self._related(number, each) for number, each in enumerate(related, 1)]
        if finding.fix.edits and (fix := self._fix(finding.fix)):
            result["fixes"] = [fix]
        if withheld is not None:
            result["suppressions"] = [self._suppression(withheld)]
        return result

    # --- places ---------------------------------------------------------------------------------------------------------------------

    def _place(self, finding: Finding) -> Json:
        span = finding.span
        place: dict[str, Json] = {
            "physicalLocation": {
                "artifactLocation": artifact(repository_path(span.path, self._view) or span.path),
                "region": _row(region(span, self._view.source(span.path))),
            }
        }
        if span.cell is not None:
            place["logicalLocations"] = [{"name": f"cell {span.cell + 1}", "kind": "module"}]
        return place

    def _location(self, evidence: Evidence) -> dict[str, Json] | None:
        path = repository_path(evidence.path, self._view) if evidence.path is not None else None
        if evidence.path is None or path is None or evidence.line is None:
            return None
        where: dict[str, Json] = {"startLine": evidence.line}
        if evidence.span is not None:
            where = _row(region(evidence.span, self._view.source(evidence.path)))
        return {"physicalLocation": {"artifactLocation": artifact(path), "region": where}}

    def _related(self, number: int, evidence: Evidence) -> Json:
        return {"id": number, **(self._location(evidence) or {}), "message": {"text": _plain(_said(evidence))}}

    def _fingerprints(self, finding: Finding) -> Json:
        span = finding.span
        place = region(span, self._view.source(span.path))
        if span.path not in self._hashes:
            source = self._view.source(span.path)
            lines = self._lines[span.path]
            self._hashes[span.path] = line_hashes(source.data, lines, max(lines)) if source is not None else {}
        prints: dict[str, Json] = {"klaudit/v1": whole(finding.fingerprint)} if finding.fingerprint else {}
        if line := self._hashes[span.path].get(place.line):
            prints["primaryLocationLineHash"] = line
        return prints

    # --- what may be done -----------------------------------------------------------------------------------------------------------

    def _fix(self, fix: Fix) -> Json:
        by_path: dict[str, list[Edit]] = {}
        for edit in fix.edits:
            by_path.setdefault(edit.path, []).append(edit)
        changes: list[Json] = []
        for path, edits in by_path.items():
            place = repository_path(path, self._view)
            if place is None:
                return None  # part of a fix is none
            replacements: list[Json] = [*self._replacements(path, edits)]
            changes.append({"artifactLocation": artifact(place), "replacements": replacements})
        return {"description": {"text": _plain(prose(fix.title)) or "As klaudit fix would"}, "artifactChanges": changes}

    def _replacements(self, path: str, edits: Iterable[Edit]) -> Iterator[Json]:
        source = self._view.source(path)
        for edit in sorted(edits, key=lambda each: each.start):
            deleted: Json
            if source is None or edit.end > len(source.data):
                deleted = {"byteOffset": edit.start, "byteLength": edit.end - edit.start}
            else:
                deleted = _row(exact_region(edit.start, edit.end, source))
            yield {"deletedRegion": deleted, "insertedContent": {"text": whole(edit.replacement)}}

    def _suppression(self, withheld: Withheld) -> Json:
        row: dict[str, Json] = {"kind": "inSource" if withheld.by == "suppression" else "external"}
        if withheld.reason:
            row["justification"] = prose(withheld.reason)
        path = repository_path(withheld.path, self._view) if withheld.path is not None else None
        if path is not None and withheld.line is not None:
            row["location"] = {
                "physicalLocation": {"artifactLocation": artifact(path), "region": {"startLine": withheld.line}}
            }
        return row


def artifact(path: str) -> Json:
    return {"uri": uri(path), "uriBaseId": ROOT}


def _row(place: Region) -> dict[str, Json]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


# --- words --------------------------------------------------------------------------------------------------------------------------


def _message(finding: Finding, related: Iterable[Evidence]) -> str:
    """The message, then what to do, then links to where the values come from: code scanning shows only those that are named in it."""
    parts = [_plain(prose(finding.message)).rstrip(".")]
    if finding.fix.title:
        parts.append("To mend it: " + _plain(prose(finding.fix.title)).rstrip("."))
    links = [f"[{_link_text(each)}]({number})" for number, each in enumerate(related, 1)]
    if links:
        parts.append(f"See {', '.join(links)}")
    return ". ".join(parts) + "."


def _link_text(evidence: Evidence) -> str:
    path = visible((evidence.path or "").rpartition("/")[2])
    return re.sub(r"([\\\[\]])", r"\\\1", f"{path}:{evidence.line}")


def _said(evidence: Evidence) -> str:
    if is_step(evidence):
        return f"by way of {visible(evidence.setting)}" if evidence.setting else "by way of this line"
    note = f" ({prose(evidence.note)})" if evidence.note else ""
    return f"{visible(evidence.setting)} = {value(evidence.value)}{note}"


def _plain(text: str) -> str:
    """Text in which no link begins, whatever it quotes: `[text](address)` would be one in a message."""
    return _LINK.sub("] ", text)
