"""How a report is to be shown: where its excerpts come from, how wide, how much, in colour or not."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Container, Mapping
from typing import TypeAlias

from msgspec import Struct

from klaudit.model import Setup, Span
from klaudit.readers.source import Source
from klaudit.reports.visible import visible

MIN_WIDTH = 40
DEFAULT_WIDTH = 100
COMMENT = 65_536  # bytes that surely fit into a comment on a pull request
NO_LIMIT = 1_000_000  # as a width: a line for every row, which is what tools behind a pipe expect


Which: TypeAlias = tuple[Span, tuple[str, ...], str]  # what tells one set-up of a report from another


def which(setup: Setup) -> Which:
    return setup.span, setup.assumes, setup.symbol


def _no_source(path: str) -> Source | None:
    return None


def _no_outlook() -> Mapping[Which, Setup]:
    return {}


class View(Struct, frozen=True):
    """`source` gives a file of the report by path, for excerpts; `prefix` leads from the working directory to the scanned root, and
    `inside` from there to the working directory, where that lies below it.

    `wrap` says whether lines that tools look for (`path:line:column ...`) may be broken to `width` too: on a terminal, not in a pipe.
    `repository_prefix` leads from the root of the repository to the scanned root, which is what CI systems know files by; `blob` is the
    address below which they show them.  `room` is how many bytes may be written, for formats that know how to be short.  `after` gives
    what set-ups would be after `klaudit fix`; it takes time, and is called only by formats that tell it.  Of the rules in `each_note`
    the report for people lists every note, however many set-ups share it.
    """

    source: Callable[[str], Source | None] = _no_source
    prefix: str = ""
    inside: str = ""
    width: int = DEFAULT_WIDTH
    wrap: bool = False
    colour: bool = False
    quiet: bool = False
    verbose: bool = False
    repository_prefix: str = ""
    blob: str = ""
    room: int = COMMENT
    after: Callable[[], Mapping[Which, Setup]] = _no_outlook
    each_note: Container[str] = ()

    def path(self, path: str) -> str:
        """A path of the report as seen from the working directory, safe to print."""
        if posixpath.isabs(path):  # named by the user, and not below the root
            return visible(path)
        return visible(posixpath.relpath(path, self.inside) if self.inside else self.prefix + path)

    def place(self, path: str, line: int | None, column: int | None = None, cell: int | None = None) -> str:
        """`path:line:column`; the cell of a notebook counts from 1."""
        shown = self.path(path)
        shown += "" if line is None else f":{line}" + ("" if column is None else f":{column}")
        return shown if cell is None else f"{shown} (cell {cell + 1})"
