"""What of a report counts: comments that suppress, policy, baseline, changes since a commit.

Each step is a module with `hold(report, gate) -> Report`: it moves findings to `withheld`, adds its own, or adds remarks.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from klaudit.budget import Budget
from klaudit.configuration import Options
from klaudit.discover import Targets
from klaudit.model import Report
from klaudit.tree import Tree


class Gate(Struct, frozen=True):
    """What the steps may look at.

    `files` are all files of the scan, also those that held no word of interest; `marked` those that hold `klaudit:`.
    """

    tree: Tree
    targets: Targets
    files: Sequence[str]
    options: Options
    marked: Sequence[str] = ()
    budget: Budget = Budget()


def hold(report: Report, gate: Gate) -> Report:
    """The report as it counts, steps in this order: suppressions, policy, baseline, changes."""
    return report
