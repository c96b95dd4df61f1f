"""Bytes with positions: every reader works on a Source, whose spans always point into the file on disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from klaudit.model import Span


class UnreadableError(ValueError):
    """A file that cannot be read as what it claims to be; `line` counts from 1, None where it has none."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Source:
    """UTF-8 text of a file, or of a piece embedded in one (notebook cell, block scalar, heredoc).

    `data` is what a reader parses.  For an embedded piece, `offsets` maps positions of `data` to positions of the parent's data:
    sorted `(here, there)` pairs; between two pairs both sides advance byte by byte.
    """

    def __init__(
        self,
        path: str,
        data: bytes,
        *,
        parent: Source | None = None,
        offsets: Sequence[tuple[int, int]] = ((0, 0),),
        cell: int | None = None,
    ) -> None:
        self.path = path
        self.data = data
        self.parent = parent
        self.cell = cell if cell is not None or parent is None else parent.cell
        self._here = [here for here, _ in offsets]
        self._there = [there for _, there in offsets]

    @cached_property
    def text(self) -> str:
        """The data as text.  Raises UnreadableError, with the line, where it is not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise UnreadableError(f"not UTF-8: byte 0x{self.data[error.start]:02x}", line) from None

    def embed(self, data: bytes, offsets: Sequence[tuple[int, int]], *, cell: int | None = None) -> Source:
        """A piece of this source as a source of its own."""
        return Source(self.path, data, parent=self, offsets=offsets, cell=cell)

    def span(self, start: int, end: int) -> Span:
        """The span, in the file on disk, of bytes `start`..`end` of this source's data."""
        source, cell = self, self.cell
        while source.parent is not None:
            start, end = source._to_parent(start), source._to_parent(end, is_end=end > start)
            source = source.parent
        line, column = source.position(start)
        end_line, end_column = source.position(end)
        return Span(self.path, start, end, line, column, end_line, end_column, cell)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (in characters), from 1, of a byte offset into this source's data."""
        starts = self._line_starts
        line = bisect_right(starts, offset) - 1
        prefix = self.data[starts[line] : offset]
        column = len(prefix) if prefix.isascii() else len(prefix.decode("utf-8", "replace"))
        return line + 1, column + 1

    def line_of(self, offset: int) -> int:
        """Line, from 1, in the file on disk, of a byte offset into this source's data."""
        source = self
        while source.parent is not None:
            offset = source._to_parent(offset)
            source = source.parent
        return bisect_right(source._line_starts, offset)

    def char_to_byte(self, index: int) -> int:
        """Byte offset of a character index into `text` (parsers written in Python count characters)."""
        return index if self._is_ascii else len(self.text[:index].encode("utf-8"))

    @cached_property
    def _is_ascii(self) -> bool:
        return self.data.isascii()

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, at = [0], self.data.find(b"\n")
        while at != -1:
            starts.append(at + 1)
            at = self.data.find(b"\n", at + 1)
        return starts

    def _to_parent(self, offset: int, *, is_end: bool = False) -> int:
        if is_end:  # the end belongs to the last byte inside, which may stand before a jump
            return self._to_parent(offset - 1) + 1
        at = max(bisect_right(self._here, offset) - 1, 0)
        return self._there[at] + offset - self._here[at]
