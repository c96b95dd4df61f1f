"""KLA003: part of a file with launches could not be read."""

from __future__ import annotations

import re

from klaudit.findings.judging import Draft, finding
from klaudit.model import Finding, Problem, Span

_NUMBERS = re.compile(r"\d+")  # of lines and cells, which move


def partly_read(problem: Problem) -> Finding:
    """The finding for a problem of a reader in a file that was read otherwise."""
    line = problem.line or 1
    return finding(
        "unreadable-file",
        Draft(Span(problem.path, 0, 0, line, 1, line, 1), problem.message, key=_NUMBERS.sub("", problem.message)),
    )
