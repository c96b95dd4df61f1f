"""Findings that do not count, in words: how many, and who said so."""

from __future__ import annotations

from collections import Counter

from klaudit.model import Report, Withheld, WithheldBy
from klaudit.reports.view import View
from klaudit.reports.wording import counted, prose

_WORDS: dict[WithheldBy, str] = {
    "suppression": "suppressed",
    "allowed": "allowed by the policy",
    "baseline": "in the baseline",
    "unchanged": "not changed",
    "confidence": "below the confidence asked for",
}


def counts(report: Report) -> list[tuple[WithheldBy, int]]:
    """How many by each reason, without those that withhold none, in the order in which the gate asks."""
    found = Counter(withheld.by for withheld in report.withheld)
    return [(by, found[by]) for by in _WORDS if found[by]]


def withheld_in_words(report: Report) -> str:
    """`3 findings withheld (2 suppressed, 1 in the baseline)`; empty where there are none."""
    if not report.withheld:
        return ""
    reasons = ", ".join(f"{count:,} {_WORDS[by]}" for by, count in counts(report))
    return f"{counted(len(report.withheld), 'finding')} withheld ({reasons})"


def why_withheld(withheld: Withheld, view: View) -> str:
    """`suppressed at run.sh:12: known, see #7`."""
    place = f" ({view.place(withheld.path, withheld.line)})" if withheld.path is not None else ""
    return f"{_WORDS[withheld.by]}{place}" + (f": {prose(withheld.reason)}" if withheld.reason else "")
