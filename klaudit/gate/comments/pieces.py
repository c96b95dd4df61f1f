"""Text with comments in one syntax: where its comments stand, and which statement, entry or command each of them is about."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

from klaudit.readers.source import Source

Range = tuple[int, int]
_BLANK = b" \t\r\f\xef\xbb\xbf"  # a byte order mark too


class Piece:
    """`comments` and `units` are byte ranges of the source's data, in order.

    A unit is a statement, a command line with all its continued lines, or an entry.  Only `nested` ones (entries) hold others.
    `bodies` says up to where a unit reaches whose text goes on below its last line (heredocs).  Comments without klaudit's mark may
    be left out.
    """

    def __init__(
        self,
        source: Source,
        comments: Sequence[Range],
        units: Sequence[Range],
        *,
        nested: bool = False,
        bodies: dict[Range, int] | None = None,
    ) -> None:
        self.source = source
        self.data = source.data
        self.comments = comments
        self.nested = nested
        self._units = sorted(set(units), key=lambda unit: (unit[0], -unit[1]))
        self._starts = [start for start, _ in self._units]
        self._bodies = bodies or {}

    def covered(self, comment: Range) -> list[Range]:
        """What a comment is about.

        Inside a statement: that statement.  Alone on its line: the next statement or entry, with all it holds, and a command that it cuts
        off.  Behind something: its own line, and the statement or innermost entry that begins or ends there.
        """
        start, end = comment
        if not self.nested and (unit := self._around(start)) is not None:
            return [self._whole(unit)]
        line = self.data.rfind(b"\n", 0, start) + 1
        if not self.data[line:start].strip(_BLANK):
            following = self._next(end)
            found = [] if following is None else [self._whole(following)]
            if not self.nested and self.data[:line].endswith((b"\\\n", b"\\\r\n")):  # the line above is cut off by it
                found += map(self._whole, self._behind(self.data.rfind(b"\n", 0, line - 1) + 1, line))
            return found
        return [(line, start), *map(self._whole, self._behind(line, start))]

    def unit_at(self, offset: int) -> Range | None:
        """The unit that a comment on a line of its own could be about, to cover the byte at `offset`: one that begins on no other's line.

        Of nested ones the innermost.
        """
        at = bisect_right(self._starts, offset) - 1
        while at >= 0:
            start, end = self._units[at]
            if self._whole((start, end))[1] >= offset and self._leads(at):
                return start, end
            at -= 1
        return None

    def line_of(self, unit: Range) -> int:
        """Where the line begins on which the unit does."""
        return self.data.rfind(b"\n", 0, unit[0]) + 1

    @property
    def first(self) -> Range | None:
        """The first unit, None where there is none."""
        return self._units[0] if self._units else None

    def statements(self) -> list[bytes]:
        """The text of all units, without what stands between them."""
        return [self.data[start:end] for start, end in self._units]

    def _leads(self, at: int) -> bool:
        """Whether a comment above the unit's line would be about this unit."""
        first = bisect_left(self._starts, self.data.rfind(b"\n", 0, self._starts[at]) + 1)
        return first == at

    def _around(self, offset: int) -> Range | None:
        at = bisect_right(self._starts, offset) - 1
        return self._units[at] if at >= 0 and offset < self._units[at][1] else None

    def _next(self, offset: int) -> Range | None:
        at = bisect_left(self._starts, offset)
        return self._units[at] if at < len(self._units) else None

    def _behind(self, line: int, offset: int) -> list[Range]:
        """Units that begin or end between the line's start and `offset`; of nested ones the innermost of either kind."""
        begun = self._units[bisect_left(self._starts, line) : bisect_left(self._starts, offset)]
        ended_from, ended_to = bisect_left(self._ends, (line, 0)), bisect_right(self._ends, (offset, len(self.data)))
        ended = [unit for end, unit in self._by_end[ended_from:ended_to]]
        if not self.nested:
            return list(dict.fromkeys([*begun, *ended]))
        innermost = [begun[-1]] if begun else []
        return list(dict.fromkeys([*innermost, *([max(ended)] if ended else [])]))

    def _whole(self, unit: Range) -> Range:
        return unit[0], self._bodies.get(unit, unit[1])

    @cached_property
    def _by_end(self) -> list[tuple[int, Range]]:
        return sorted((unit[1], unit) for unit in self._units)

    @cached_property
    def _ends(self) -> list[Range]:
        return [(end, unit[0]) for end, unit in self._by_end]
