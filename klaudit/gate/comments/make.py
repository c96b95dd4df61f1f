"""Comments and lines of makefiles."""

from __future__ import annotations

import re
from bisect import bisect_left

from klaudit.gate.comments.pieces import Piece
from klaudit.readers.make.lines import logical_lines
from klaudit.readers.source import Source

_MAX_BYTES = 1_000_000  # what the reader takes
_COMMENT = re.compile(
    rb"(?m)^[ \t]*(#[^\r\n]*)"
)  # on a line of its own: behind a recipe it is the shell's, or part of a word


def makefile_piece(source: Source) -> Piece:
    """The source as a piece; nothing is found in what no make would read."""
    if len(source.data) > _MAX_BYTES or b"\0" in source.data:
        return Piece(source, [], [])
    comments = [match.span(1) for match in _COMMENT.finditer(source.data)]
    starts = {start for start, _ in comments}
    units = []
    for line in logical_lines(source.data):
        start = line.place(0) if line.at else line.start
        if start not in starts:
            units.append((start, max(line.place(-1) + 1 if line.at else line.end, start)))
    begins = [start for start, _ in units]  # in order, as lines are
    return Piece(source, [each for each in comments if not _is_within(each[0], begins, units)], units)


def _is_within(at: int, begins: list[int], units: list[tuple[int, int]]) -> bool:
    unit = bisect_left(begins, at) - 1
    return unit >= 0 and at < units[unit][1]
