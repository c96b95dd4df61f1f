"""A page of Markdown that keeps to the room there is for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klaudit.reports.markdown_text import line, table
from klaudit.reports.visible import inert
from klaudit.reports.wording import counted

Rows = Sequence[Sequence[str]]

_FOR_THE_REST = 100  # bytes of the line that says how many rows do not fit


class Page:
    """Lines with their ends, at most `room` bytes of UTF-8."""

    def __init__(self, room: int) -> None:
        self.lines: list[str] = []
        self._room = room
        self._kept = 0

    def keep(self, room: int) -> None:
        """Leaves this much for what is added after `release`."""
        self._kept = max(min(room, self._room), 0)
        self._room -= self._kept

    def release(self) -> None:
        self._room += self._kept
        self._kept = 0

    def add(self, lines: Sequence[str]) -> bool:
        """All of these lines or none."""
        ended = [f"{inert(line)}\n" for line in lines]
        size = _size(ended)
        if size > self._room:
            return False
        self._room -= size
        self.lines += ended
        return True

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> int:
        """As many of `count` rows as fit; how many do not."""
        if count == 0 or not self.add(["", *table(headers, ())]):
            return count
        written = 0
        for row in rows:
            if not self.add([line(row)]):
                break
            written += 1
        return count - written

    def folded(self, title: str, lines: Sequence[str]) -> bool:
        """Lines to be unfolded, all or none."""
        return self.add([*_opened(title), "", *lines, *_CLOSED])

    def folded_table(self, title: str, headers: Sequence[str], rows: Rows) -> None:
        """A table to be unfolded, of as many rows as fit."""
        if not rows:
            return
        end = _size([f"{each}\n" for each in _CLOSED]) + _FOR_THE_REST
        self.keep(end)
        if self._kept < end or not self.add(_opened(title)):
            self.release()
            return
        left = self.table(headers, rows, len(rows))
        self.release()
        self.add([*(["", f"{counted(left, 'row')} more than fit here."] if left else []), *_CLOSED])


_CLOSED = ("", "</details>", "")


def _opened(title: str) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>"]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8")) for line in lines)
