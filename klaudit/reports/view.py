"""How a report is to be shown: where its excerpts come from, how wide, how much, in colour or not."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from klaudit.readers.source import Source
from klaudit.reports.visible import visible

MIN_WIDTH = 40
DEFAULT_WIDTH = 100
NO_LIMIT = 1_000_000  # as a width: a line for every row, which is what tools behind a pipe expect


def _no_source(path: str) -> Source | None:
    return None


class View(Struct, frozen=True):
    """`source` gives a file of the report by path, for excerpts; `prefix` leads from the working directory to the scanned root.

    `wrap` says whether lines that tools look for (`path:line:column ...`) may be broken to `width` too: on a terminal, not in a pipe.
    """

    source: Callable[[str], Source | None] = _no_source
    prefix: str = ""
    width: int = DEFAULT_WIDTH
    wrap: bool = False
    colour: bool = False
    quiet: bool = False
    verbose: bool = False

    def path(self, path: str) -> str:
        """A path of the report as seen from the working directory, safe to print."""
        return visible(self.prefix + path)

    def place(self, path: str, line: int | None, column: int | None = None, cell: int | None = None) -> str:
        """`path:line:column`; the cell of a notebook counts from 1."""
        shown = self.path(path)
        shown += "" if line is None else f":{line}" + ("" if column is None else f":{column}")
        return shown if cell is None else f"{shown} (cell {cell + 1})"
