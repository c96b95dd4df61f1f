"""Items between commas: arguments of calls, elements of lists, entries of dicts and of flow mappings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from klaudit.fixes.page import Page
from klaudit.fixes.words import runs
from klaudit.model import Edit

_SPACE_BEFORE = re.compile(rb"[ \t\r\n]*\Z")
_COMMA = re.compile(rb"[ \t\r\n]*,")
_ALL_SPACE = re.compile(rb"[ \t\r\n]*")
_GAP = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_COMMENT = re.compile(rb"[ \t]*,?[ \t]*#")
_FARTHEST = 4_000


def replace(page: Page, start: int, end: int, text: str, more: Sequence[str] = ()) -> Edit:
    """The item as `text`, with `more` items beside it."""
    between = _between(page, start)
    ordered = [*more, text] if _COMMENT.match(page.data, end) else [text, *more]
    return page.edit(start, end, between.join(ordered))


def insert(page: Page, start: int, end: int, items: Sequence[str]) -> Edit:
    """`items` behind the item `start`..`end`, or before it where a comment follows that belongs to it."""
    between = _between(page, start)
    if _COMMENT.match(page.data, end):
        return page.edit(start, start, "".join(item + between for item in items))
    return page.edit(end, end, "".join(between + item for item in items))


def remove_all(page: Page, places: Iterable[tuple[int, int]]) -> list[Edit]:
    """Takes items away; those that stand side by side go as one, so that no comma is claimed twice."""
    return [remove(page, start, end) for start, end in runs(page.data, places, _GAP)]


def remove(page: Page, start: int, end: int) -> Edit:
    """The item with its comma; a comment behind it stays."""
    data = page.data
    before = _before(data, start)
    comma = _COMMA.match(data, end)
    comment = _COMMENT.match(data, end)
    if comment and b"\n" in before:
        return page.edit(start, comment.end() - 1, "")
    if comma is not None:
        stop = comma.end()
        if not before and (space := _ALL_SPACE.match(data, stop)):
            stop = space.end()
        return page.edit(start - len(before), stop, "")
    first = start - len(before)
    if data[first - 1 : first] == b",":
        first -= 1
    return page.edit(first, end, "")


def _before(data: bytes, at: int) -> bytes:
    match = _SPACE_BEFORE.search(data, max(at - _FARTHEST, 0), at)
    return match.group() if match else b""


def _between(page: Page, start: int) -> str:
    before = _before(page.data, start)
    if b"\n" not in before:
        return ", "
    line_end = "\r\n" if b"\r\n" in before else "\n"
    indent = before.rpartition(b"\n")[2].decode()
    return f",{line_end}{indent}"
