"""The text in which edits are made: a file as it is, or the cells of a notebook, whose JSON escapes are put back on the way out."""

from __future__ import annotations

import json
import re
from bisect import bisect_left

from klaudit.discover.suffixes import is_makefile
from klaudit.model import Edit
from klaudit.readers.source import Source

_BETWEEN_LINES = re.compile(rb'\\n"\s*,\s*"')  # where a cell's lines are strings of their own


class CannotEditError(ValueError):
    """An edit that cannot be made without touching what must stay; the message says why."""


class Page:
    """Bytes to read and edit.  Offsets into `data` are the page's own; spans of settings are offsets into the file."""

    def __init__(self, source: Source) -> None:
        root = source
        while root.parent is not None:
            root = root.parent
        self.path = source.path
        self.data = source.data
        self._file = root.data
        self._source = source
        self._is_file = source is root

    @classmethod
    def of(cls, source: Source) -> Page:
        """Raises UnreadableError for a notebook that is none, CannotEditError for what is only read."""
        if is_makefile(source.path):
            raise CannotEditError(f"make expands what stands in {source.path}: to be changed by hand")
        if not source.path.endswith(".ipynb"):
            return cls(source)
        from klaudit.readers.notebook import read_notebook

        for cell in read_notebook(source).cells:
            text = cell.source.parent
            if text is not None and text.parent is not None:
                return cls(text)
        raise CannotEditError("the notebook has no cells")

    def at(self, offset: int) -> int:
        """The page's offset of a byte of the file."""
        if self._is_file:
            return offset
        return bisect_left(range(len(self.data)), offset, key=lambda here: self._source.span(here, here).start)

    def end(self, start: int, offset: int) -> int:
        """The page's offset of the end of a stretch that begins at `start`, given where it ends in the file."""
        if self._is_file:
            return offset
        ends = range(start, len(self.data) + 1)
        return start + bisect_left(ends, offset, key=lambda here: self._source.span(start, here).end)

    def edit(self, start: int, end: int, text: str) -> Edit:
        """The edit of the file that replaces `start`..`end` of the page."""
        if self._is_file:
            return Edit(self.path, start, end, text)
        span = self._source.span(start, end)
        if (
            start == end > 0 and self.data[start - 1 : start] != b"\n"
        ):  # behind a word, which may be the last of its cell
            place = self._source.span(start - 1, start).end
            return Edit(self.path, place, place, self._escaped(text, start))
        return Edit(self.path, span.start, span.end, self._escaped(text, start))

    def _escaped(self, text: str, at: int) -> str:
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        return escaped.replace("\\n", self._line_end(at))

    def _line_end(self, at: int) -> str:
        """How the cell around `at` spells the end of a line."""
        newline = self.data.rfind(b"\n", 0, at)
        while newline >= 0:
            match = _BETWEEN_LINES.match(self._file, self._source.span(newline, newline).start)
            if match is not None:
                return match.group().decode()
            spelled = self._source.span(newline, newline + 1)
            if self._file[spelled.start : spelled.end] == b"\\n":
                return "\\n"  # the cell is one string
            newline = self.data.rfind(b"\n", 0, newline)
        return "\\n"
