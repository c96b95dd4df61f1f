"""What of a report counts: required set-ups, comments that suppress, policy, baseline, changes since a commit.

Each step is a module with `hold(report, gate) -> Report`: it moves findings to `withheld`, adds its own, or adds remarks.
"""

from __future__ import annotations

from klaudit.gate import baseline, changes, policy, required, suppressions
from klaudit.gate.step import Gate
from klaudit.model import Report

__all__ = ["Gate", "hold"]

# Required set-ups come first, so that a comment can suppress what they find.
_STEPS = (required, suppressions, policy, baseline, changes)


def hold(report: Report, gate: Gate) -> Report:
    """The report as it counts, steps in this order: required set-ups, suppressions, policy, baseline, changes."""
    for step in _STEPS:
        report = step.hold(report, gate)
    return report
