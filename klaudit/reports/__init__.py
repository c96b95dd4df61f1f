"""What becomes of a report: one module a format, each with `render(report, view)`, which yields text piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from klaudit.model import Report
from klaudit.reports.view import View

FORMATS = {
    "text": "klaudit.reports.text",
    "json": "klaudit.reports.json",
    "html": "klaudit.reports.html",
    "sarif": "klaudit.reports.sarif",
    "github": "klaudit.reports.github",
    "gitlab": "klaudit.reports.gitlab",
    "junit": "klaudit.reports.junit",
    "markdown": "klaudit.reports.markdown",
}


class Format(Protocol):
    """A module of FORMATS."""

    def render(self, report: Report, view: View) -> Iterator[str]: ...


def load(name: str) -> Format:
    """The module of a format.  Raises KeyError for an unknown one."""
    return cast("Format", import_module(FORMATS[name]))


__all__ = ["FORMATS", "Format", "View", "load"]
