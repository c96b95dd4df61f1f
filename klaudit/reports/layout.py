"""Lines of styled text: what the plain and the coloured report are both made of.  Only ASCII is drawn with, so any terminal will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from klaudit.reports.visible import cells, fold, inert

Style: TypeAlias = Literal[
    "plain", "strong", "faint", "path", "rule", "error", "warning", "note", "good", "context", "header"
]
Piece: TypeAlias = tuple[str, Style]
Line: TypeAlias = tuple[Piece, ...]
Cell: TypeAlias = tuple[str, Style]

_GAP = 2
_NARROWEST = 8  # of a column, before a table is given up for a list

_STYLES: dict[Style, str] = {
    "plain": "",
    "strong": "bold",
    "faint": "dim",
    "path": "bold",
    "rule": "bold cyan",
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold blue",
    "good": "green",
    "context": "cyan",
    "header": "underline",
}


def paint(lines: Iterable[Line], *, colour: bool) -> Iterator[str]:
    """Text with line ends, with terminal colours on request."""
    if not colour:
        for line in lines:
            yield inert("".join(text for text, _ in line).rstrip(" ")) + "\n"
        return
    from rich.color import ColorSystem
    from rich.style import Style as RichStyle

    styles = {name: RichStyle.parse(words) for name, words in _STYLES.items() if words}
    for line in lines:
        painted = (
            styles[style].render(text, color_system=ColorSystem.STANDARD) if style in styles else text
            for text, style in line
        )
        yield inert("".join(painted)) + "\n"


def paragraph(text: str, width: int, *, first: Line = (), indent: int = 0, style: Style = "plain") -> Iterator[Line]:
    """Text folded to `width`, after `first` on the first line and `indent` spaces on the others."""
    start = sum(cells(piece) for piece, _ in first)
    head, *rest = fold(text, max(width - indent, 10), max(width - start, 10))
    yield (*first, (head, style))
    for more in rest:
        yield ((" " * indent + more, style),)


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], width: int, *, indent: int = 0) -> Iterator[Line]:
    """Rows under headers, cells folded where the width asks for it; a list of `header: cell` where a table cannot fit."""
    widths = _widths(headers, rows, width - indent)
    if widths is None:
        yield from _as_list(headers, rows, width, indent)
        return
    yield _row([(header, "header") for header in headers], widths, indent)
    for row in rows:
        folded = [fold(text, room) for (text, _), room in zip(row, widths, strict=True)]
        for at in range(max(map(len, folded))):
            parts = [part[at] if at < len(part) else "" for part in folded]
            yield _row([(text, style) for text, (_, style) in zip(parts, row, strict=True)], widths, indent)


def _row(row: Sequence[Cell], widths: Sequence[int], indent: int) -> Line:
    spans: list[Piece] = [(" " * indent, "plain")]
    for (text, style), width in zip(row, widths, strict=True):
        spans += [(text, style), (" " * (width - cells(text) + _GAP), "plain")]
    return tuple(spans[:-1])


def _widths(headers: Sequence[str], rows: Sequence[Sequence[Cell]], width: int) -> list[int] | None:
    """Widths of columns that fit, the widest giving way first; None where some would be too narrow to read."""
    widths = [
        max(cells(header), *(cells(row[at][0]) for row in rows)) if rows else cells(header)
        for at, header in enumerate(headers)
    ]
    least = [min(wide, max(_NARROWEST, cells(header))) for wide, header in zip(widths, headers, strict=True)]
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    while excess > 0:
        at = max((i for i in range(len(widths)) if widths[i] > least[i]), key=lambda i: widths[i], default=None)
        if at is None:
            return None
        widths[at] -= 1
        excess -= 1
    return widths


def _as_list(headers: Sequence[str], rows: Sequence[Sequence[Cell]], width: int, indent: int) -> Iterator[Line]:
    for row in rows:
        for at, (header, (text, style)) in enumerate(zip(headers, row, strict=True)):
            if text:
                mark = "- " if at == 0 else "  "
                first: Line = ((" " * indent + f"{mark}{header}: ", "faint"),)
                yield from paragraph(text, width, first=first, indent=indent + 4, style=style)
