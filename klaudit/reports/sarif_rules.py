"""The catalogue as SARIF rules, with all that code scanning shows of a rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from klaudit.findings import catalogue
from klaudit.findings.catalogue import Entry, Example
from klaudit.model import Finding, Severity
from klaudit.reports.json_text import Json
from klaudit.reports.links import rule_page
from klaudit.reports.wording import prose

_LONGEST = 1_024  # characters of a description
_CATEGORIES = {"0": "hygiene", "1": "gradient", "2": "settings", "3": "code"}
_PROBLEM: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "recommendation"}
Precision = Literal["high", "medium"]


class Rules:
    """The rules of one report: the whole catalogue, and findings of rules that are not in it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        entries = catalogue.load()
        self.rows: list[Json] = [_rule(entry) for entry in entries]
        self._index = {entry.id: at for at, entry in enumerate(entries)}
        for finding in findings:
            if finding.rule not in self._index:
                self._index[finding.rule] = len(self.rows)
                self.rows.append(_rule(_entry(finding)))

    def index(self, rule: str) -> int:
        return self._index[rule]


def _entry(finding: Finding) -> Entry:
    """What can be said of a rule that the catalogue does not hold."""
    told = finding.why or finding.message
    return Entry(finding.rule, finding.name, finding.severity, prose(told), prose(told), "", "", (), ())


def _rule(entry: Entry) -> Json:
    rule: dict[str, Json] = {
        "id": entry.id,
        "name": entry.name,
        "shortDescription": {"text": _cut(_one_line(entry.summary))},
        "fullDescription": {"text": _cut(_one_line(entry.why))},
        "help": {"text": _text(entry), "markdown": _markdown(entry)},
        "defaultConfiguration": {"level": entry.severity},
        "properties": {
            "tags": ["reinforcement-learning", "kl-divergence", _CATEGORIES.get(entry.id[3:4], "policy")],
            "precision": _precision(entry),
            "problem.severity": _PROBLEM[entry.severity],
        },
    }
    if page := rule_page(entry.id):
        rule["helpUri"] = page
    return rule


def _precision(entry: Entry) -> Precision:
    """Settings are resolved as the program would; what code does is followed by its names and shapes."""
    return "medium" if entry.id[3:4] == "3" else "high"


def _text(entry: Entry) -> str:
    parts = [entry.why, f"What to do: {entry.fix}" if entry.fix else "", _references(entry)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _markdown(entry: Entry) -> str:
    parts = [f"**{entry.id} {entry.name}**: {entry.summary}", entry.why]
    if entry.fix:
        parts += ["### What to do", entry.fix]
    for example in entry.examples:
        title = f" ({example.title})" if example.title else ""
        parts += [f"### Example{title}", *_example(example)]
    if references := _references(entry):
        parts.append(references)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _example(example: Example) -> list[str]:
    shown = [(f"`{name}`:", text) for name, text in example.beside]
    shown += [("Wrong:", example.wrong), ("Right:", example.right)]
    return [f"{label}\n\n```{example.language}\n{text.rstrip()}\n```" for label, text in shown if text.strip()]


def _references(entry: Entry) -> str:
    return f"References: {', '.join(map(_one_line, entry.references))}" if entry.references else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str) -> str:
    """As many whole sentences as fit; code scanning refuses longer descriptions."""
    if len(text) <= _LONGEST:
        return text
    end = text.rfind(". ", 0, _LONGEST)
    return text[: end + 1] if end > 0 else text[: _LONGEST - 3] + "..."
