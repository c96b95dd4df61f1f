"""Source lines with what matters in them underlined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from klaudit.model import Span
from klaudit.readers.source import Source
from klaudit.reports.layout import Line, Piece, Style
from klaudit.reports.visible import cells, cut, escape

_TAB = 4
_MOST_LINES = 3  # of one mark: a launch may be a command of a hundred lines
_AROUND = 2_000  # characters looked at on each side of a mark: a line may be a whole file


class Mark(Struct, frozen=True):
    """A place to underline; the `primary` one with carets."""

    span: Span
    label: str = ""
    primary: bool = False


class _Underline(Struct, frozen=True):
    """Part of a mark on one line: characters `start`..`end` of it, from 0; an `end` of None is the line's end."""

    start: int
    end: int | None
    label: str
    primary: bool


def excerpt(source: Source, marks: Sequence[Mark], width: int, style: Style) -> Iterator[Line]:
    """The marked lines in order, with their numbers.  Marks beyond the end of the file, which may have changed, are left out."""
    wanted, cut_short = _by_line(marks)
    texts = _lines(source, wanted)
    if not texts:
        return
    gutter = len(str(max(texts)))
    empty: Line = ((f"{'':{gutter}} |", "context"),)
    yield empty
    before: int | None = None
    for number, text in sorted(texts.items()):
        if before is not None and number > before + 1:
            yield (("...", "context"),)
        yield from _marked_line(number, text, wanted[number], gutter, width, style)
        if number in cut_short:
            yield (("...", "context"),)
        before = None if number in cut_short else number
    yield empty


def _by_line(marks: Sequence[Mark]) -> tuple[dict[int, list[_Underline]], set[int]]:
    wanted: dict[int, list[_Underline]] = {}
    cut_short: set[int] = set()
    for mark in marks:
        first, last = mark.span.line, mark.span.end_line
        shown = range(first, min(last, first + _MOST_LINES - 1) + 1)
        for number in shown:
            start = mark.span.column - 1 if number == first else 0
            end = mark.span.end_column - 1 if number == last else None
            label = mark.label if number == shown[-1] else ""
            underline = _Underline(start, end, label, mark.primary)
            wanted.setdefault(number, []).append(underline)
        if shown[-1] < last:
            cut_short.add(shown[-1])
    return wanted, cut_short


def _lines(source: Source, wanted: dict[int, list[_Underline]]) -> dict[int, str]:
    """The texts of lines by number, decoded leniently: columns were counted the same way."""
    lines = source.data.split(b"\n")
    return {n: lines[n - 1].rstrip(b"\r").decode("utf-8", "replace") for n in wanted if 0 < n <= len(lines)}


def _marked_line(
    number: int, text: str, underlines: list[_Underline], gutter: int, width: int, style: Style
) -> Iterator[Line]:
    focus = min((u for u in underlines), key=lambda u: (not u.primary, u.start))
    first = max(focus.start - _AROUND, 0)
    line = _Drawn(text[first : focus.start + _AROUND], max(width - gutter - 3, 20))
    start = line.begin_at(focus.start - first)
    drawn = line.window(start)
    yield ((f"{number:{gutter}} | ", "context"), (drawn, "plain"))
    for underline in sorted(underlines, key=lambda u: (not u.primary, u.start)):
        end = len(text) if underline.end is None else underline.end
        at, length = line.place(underline.start - first, end - first, start)
        if length == 0:
            continue
        sign = "^" if underline.primary else "-"
        colour: Style = style if underline.primary else "context"
        margin: Piece = (f"{'':{gutter}} | ", "context")
        fits = at + length + 1 + cells(underline.label) <= line.width
        label = f" {underline.label}" if underline.label and fits else ""
        yield (margin, (" " * at, "plain"), (sign * length + label, colour))
        if underline.label and not fits:
            yield (margin, (cut(underline.label, line.width), colour))


class _Drawn:
    """A line as a terminal shows it: tabs as spaces, what is not printable as escapes; and where each character lies in it."""

    def __init__(self, text: str, width: int) -> None:
        self.width = width
        self.pieces: list[str] = []
        self.starts: list[int] = []  # column of each character, from 0, and of the end
        column = 0
        for character in text:
            if character == "\t":
                piece = " " * (_TAB - column % _TAB)
            else:
                piece = character if character.isprintable() else escape(character)
            self.pieces.append(piece)
            self.starts.append(column)
            column += cells(piece)
        self.starts.append(column)

    def begin_at(self, focus: int) -> int:
        """The first character to show: that of the line, unless what is looked at would then lie too far right."""
        focus = min(focus, len(self.pieces))
        if self.starts[-1] <= self.width or self.starts[focus] < self.width * 2 // 3:
            return 0
        return max(at for at in range(focus + 1) if self.starts[at] <= self.starts[focus] - self.width // 3)

    def window(self, start: int) -> str:
        """What fits from the character `start` on, dots standing for what does not."""
        lead = "..." if start else ""
        room = self.width - len(lead)
        if self.starts[-1] - self.starts[start] <= room:
            return lead + "".join(self.pieces[start:])
        end = start
        while self.starts[end + 1] - self.starts[start] <= room - 3:
            end += 1
        return lead + "".join(self.pieces[start:end]) + "..."

    def place(self, start: int, end: int, window: int) -> tuple[int, int]:
        """Column and width of characters `start`..`end` in the window; a width of 0 where they lie outside."""
        lead = 3 if window else 0
        last = len(self.pieces)
        left = self.starts[min(max(start, window), last)] - self.starts[window] + lead
        right = self.starts[min(max(end, window), last)] - self.starts[window] + lead
        if left >= self.width or end < window:
            return 0, 0
        return left, max(min(right, self.width) - left, 1)
