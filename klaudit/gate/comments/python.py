"""Comments and logical lines of Python, also where it does not parse."""

from __future__ import annotations

import re

from klaudit.gate.comments.pieces import Piece, Range
from klaudit.readers.python.lexer import LexError, StringToken, lexemes
from klaudit.readers.python.syntax import MAX_BYTES
from klaudit.readers.source import Source

_BLANK = b" \t\f\r\n\\\xef\xbb\xbf"  # between tokens; a byte order mark counts as blank
_LINE_END = re.compile(rb"\r\n|\r|\n")


def python_piece(source: Source) -> Piece:
    """The source as a piece; a string that does not end costs the rest of its line, and what is too large is read by nobody."""
    if len(source.data) > MAX_BYTES:
        return Piece(source, [], [])
    lines = _Lines(source.data)
    at = 0
    while at < len(source.data):
        try:
            for token in lexemes(source.data, at):
                lines.add(token)
                at = token.end
            break
        except LexError:
            line_end = _LINE_END.search(source.data, at)
            at = line_end.end() if line_end is not None else len(source.data)
            lines.give_up(at)
    lines.end(len(source.data))
    return Piece(source, lines.comments, lines.units)


class _Lines:
    """Puts tokens together to logical lines."""

    def __init__(self, data: bytes) -> None:
        self.comments: list[Range] = []
        self.units: list[Range] = []
        self._data = data
        self._at = 0  # up to where the text has been seen
        self._start: int | None = None
        self._end = 0
        self._depth = 0
        self._decorates = False

    def add(self, token: object) -> None:
        kind = "string" if isinstance(token, StringToken) else getattr(token, "kind", "")
        start, end = int(getattr(token, "start", 0)), int(getattr(token, "end", 0))
        self._text(self._at, start)
        self._at = end
        if kind == "comment":
            self.comments.append((start, end))
        elif kind == "newline":
            if self._depth == 0:
                self._close()
        elif kind != "joined":
            if kind == "bracket":
                self._depth = max(self._depth + (1 if self._data[start] in b"([{" else -1), 0)
            self._grow(start, end)

    def give_up(self, at: int) -> None:
        """What stands up to `at` is a line of its own, whatever is open."""
        self._text(self._at, at)
        self._at, self._depth = at, 0
        self._close()

    def end(self, at: int) -> None:
        self._text(self._at, at)
        self._close()

    def _text(self, start: int, end: int) -> None:
        text = self._data[start:end]
        inner = text.strip(_BLANK)
        if inner:
            first = start + text.index(inner)
            self._grow(first, first + len(inner))

    def _grow(self, start: int, end: int) -> None:
        if self._start is None:
            self._start = start
        self._end = end

    def _close(self) -> None:
        if self._start is not None:
            start = self.units.pop()[0] if self._decorates else self._start
            self._decorates = self._data.startswith(b"@", self._start)  # a decorator belongs to what it decorates
            self.units.append((start, self._end))
        self._start = None
