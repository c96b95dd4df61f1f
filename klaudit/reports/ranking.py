"""Which findings come first where not all can be shown."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.model import Confidence, Finding, Severity

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then by confidence, else in the order of the report."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), _CONFIDENCES.index(each.confidence)))
