"""Bytes with positions: every reader works on a Source, whose spans always point into the file on disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property

from klaudit.model import Span
from klaudit.patterns import rare

# characters of two, three and four bytes in UTF-8
_WIDE = rare("([\x80-\u07ff]+)|([\u0800-\uffff]+)|([\U00010000-\U0010ffff]+)")


class UnreadableError(ValueError):
    """A file that cannot be read as what it claims to be; `line` counts from 1, None where it has none."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Source:
    """UTF-8 text of a file, or of a piece embedded in one (notebook cell, block scalar, heredoc).

    `data` is what a reader parses.  For an embedded piece, `offsets` maps positions of `data` to positions of the parent's data:
    sorted `(here, there)` pairs; between two pairs both sides advance byte by byte.  `ends` says where a piece that ends at `here` ends
    in the parent, for last characters that the parent spells longer (`\\n`).  `cells` gives, by `(here, cell)`, the notebook cell that
    begins at `here`.
    """

    def __init__(
        self,
        path: str,
        data: bytes,
        *,
        parent: Source | None = None,
        offsets: Sequence[tuple[int, int]] = ((0, 0),),
        ends: Mapping[int, int] | None = None,
        cell: int | None = None,
        cells: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.path = path
        self.data = data
        self.parent = parent
        self.cell: int | None = cell if cell is not None or parent is None else parent.cell
        self._here = [here for here, _ in offsets]
        self._there = [there for _, there in offsets]
        self._ends = ends or {}
        self._cells = cells

    @cached_property
    def text(self) -> str:
        """The data as text.  Raises UnreadableError, with the line, where it is not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise UnreadableError(f"not UTF-8: byte 0x{self.data[error.start]:02x}", line) from None

    def embed(
        self,
        data: bytes,
        offsets: Sequence[tuple[int, int]],
        *,
        ends: Mapping[int, int] | None = None,
        cell: int | None = None,
        cells: Sequence[tuple[int, int]] = (),
    ) -> Source:
        """A piece of this source as a source of its own."""
        return Source(self.path, data, parent=self, offsets=offsets, ends=ends, cell=cell, cells=cells)

    def span(self, start: int, end: int) -> Span:
        """The span, in the file on disk, of bytes `start`..`end` of this source's data.

        Text put together from several places may have no such span: then it ends with the run that holds `start`.
        """
        source, cell = self, self.cell
        while source.parent is not None:
            if cell is None:
                cell = source._cell_at(start)
            run_end = source._run_end(start)
            start, end = source._to_parent(start), source._to_parent(end, is_end=end > start)
            if end < start:
                end = run_end
            source = source.parent
        starts = source._line_starts
        line = bisect_right(starts, start)
        column = source._characters(starts[line - 1], start) + 1
        if line == len(starts) or end < starts[line]:  # nearly always on one line
            return Span(self.path, start, end, line, column, line, column + source._characters(start, end), cell)
        end_line, end_column = source.position(end)
        return Span(self.path, start, end, line, column, end_line, end_column, cell)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (in characters), from 1, of a byte offset into this source's data."""
        starts = self._line_starts
        line = bisect_right(starts, offset)
        return line, self._characters(starts[line - 1], offset) + 1

    def _characters(self, start: int, end: int) -> int:
        """How many characters the bytes `start`..`end` are."""
        if self._is_ascii:
            return end - start
        stretch = self.data[start:end]
        return len(stretch) if stretch.isascii() else len(stretch.decode("utf-8", "replace"))

    def line_of(self, offset: int) -> int:
        """Line, from 1, in the file on disk, of a byte offset into this source's data."""
        source = self
        while source.parent is not None:
            offset = source._to_parent(offset)
            source = source.parent
        return bisect_right(source._line_starts, offset)

    def char_to_byte(self, index: int) -> int:
        """Byte offset of a character index into `text` (parsers written in Python count characters)."""
        if self._is_ascii:
            return index
        starts, ends, befores, widths = self._wide_runs
        run = bisect_right(starts, index) - 1
        if run < 0:
            return index
        return index + befores[run] + (min(index, ends[run]) - starts[run]) * (widths[run] - 1)

    @cached_property
    def _is_ascii(self) -> bool:
        return self.data.isascii()

    @cached_property
    def _wide_runs(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Runs of characters of one width over 1: first index, index after, surplus bytes before the run, bytes a character."""
        starts, ends, befores, widths, surplus = [], [], [], [], 0
        for match in _WIDE.finditer(self.text):
            start, end = match.span()
            width = (match.lastindex or 0) + 1
            starts.append(start)
            ends.append(end)
            befores.append(surplus)
            widths.append(width)
            surplus += (end - start) * (width - 1)
        return starts, ends, befores, widths

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, at = [0], self.data.find(b"\n")
        while at != -1:
            starts.append(at + 1)
            at = self.data.find(b"\n", at + 1)
        return starts

    def _to_parent(self, offset: int, *, is_end: bool = False) -> int:
        if is_end:  # the end belongs to the last byte inside, which may stand before a jump
            return self._ends[offset] if offset in self._ends else self._to_parent(offset - 1) + 1
        at = max(bisect_right(self._here, offset) - 1, 0)
        return self._there[at] + offset - self._here[at]

    def _run_end(self, offset: int) -> int:
        """Where, in the parent, the run of bytes ends that holds `offset`."""
        following = bisect_right(self._here, offset)
        stop = self._here[following] if following < len(self._here) else len(self.data)
        return self._to_parent(max(stop, offset + 1), is_end=True)

    def _cell_at(self, offset: int) -> int | None:
        at = bisect_right(self._cells, offset, key=lambda pair: pair[0]) - 1
        return self._cells[at][1] if at >= 0 else None
