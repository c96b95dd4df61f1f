"""Shell code: text to be parsed, from a file or put together while running (`eval`, `bash -c`), that knows where it was written."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from klaudit.readers.shell.scan import Scanner
from klaudit.readers.shell.text import EMPTY, Fragment, Place, Text, cut, from_bytes, owned_by, plain
from klaudit.readers.source import Source

if TYPE_CHECKING:
    from klaudit.readers.shell.program import Program
    from klaudit.readers.shell.words import SimpleCommand


class Code:
    """Code written in one stretch of a source, from byte `base` on.

    `program`, `commands` and `inner` (code of substitutions) cache what was made of it; `heredocs` maps the end of a line to the end of
    those heredoc bodies below it that are already taken.
    """

    def __init__(self, text: str, source: Source, base: int = 0) -> None:
        self.text = text
        self.source = source
        self.base = base
        self.program: Program | None = None
        self.commands: dict[int, SimpleCommand] = {}
        self.heredocs: dict[int, int] = {}
        self.scanner = Scanner(text)
        self.inner: dict[tuple[int, int], Code] = {}

    def place(self, start: int, end: int) -> Place:
        """Where characters `start`..`end` stand."""
        return Place(self.source, self.base + start, self.base + end)

    def written(self, start: int, end: int, variable: str | None = None) -> Text:
        """Characters `start`..`end`, with their origin: an assignment to `variable`, if it is given."""
        if end <= start:
            return EMPTY
        return (Fragment(self.text[start:end], self.source, self.base + start, self.base + end, variable),)

    def part(self, start: int, end: int) -> Code:
        """The code between `start` and `end` as code of its own."""
        return Code(self.text[start:end], self.source, self.base + start)


@lru_cache(maxsize=64)
def code_of(source: Source) -> Code:
    """The code of a whole script, parsed once: job files and other scripts start the same one again and again."""
    return Code(from_bytes(source.data), source)


class BuiltCode(Code):
    """Code put together from text of several origins."""

    def __init__(self, pieces: Text, source: Source) -> None:
        super().__init__(plain(pieces), source)
        self._pieces = pieces
        self._offsets: list[int] = []
        offset = 0
        for piece in pieces:
            self._offsets.append(offset)
            offset += len(piece.text)

    def place(self, start: int, end: int) -> Place:
        pieces = self._pieces_of(start, max(end, start + 1)) or self._pieces[-1:]
        if not pieces:
            return Place(self.source, 0, 0)
        head, tail = pieces[0].at or pieces[0].place, pieces[-1].at or pieces[-1].place
        in_order = head.source is tail.source and head.start <= tail.end
        return Place(head.source, head.start, tail.end) if in_order else head

    def written(self, start: int, end: int, variable: str | None = None) -> Text:
        pieces = tuple([piece._replace(at=None) if piece.at else piece for piece in self._pieces_of(start, end)])
        return pieces if variable is None else owned_by(pieces, variable, None)

    def part(self, start: int, end: int) -> Code:
        return BuiltCode(self._pieces_of(start, end), self.source)

    def _pieces_of(self, start: int, end: int) -> Text:
        if end <= start:
            return EMPTY
        first = max(
            bisect_right(self._offsets, start) - 1, 0
        )  # empty pieces just before `start` belong to what precedes
        last = bisect_right(self._offsets, end)
        return cut(self._pieces[first:last], start - self._offsets[first], end - self._offsets[first])
