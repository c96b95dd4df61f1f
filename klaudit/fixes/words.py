"""Words of shell commands: replace one, put more beside it, take one away, and leave the command whole.

The same holds in arrays, strings, heredocs and `bash -c`: what separates words there (blanks, line ends, continuations) is copied
from their neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from klaudit.fixes.page import CannotEditError, Page
from klaudit.model import Edit

_BEFORE = re.compile(rb"(?:[ \t]|\\?\r?\n)*\Z")
_AFTER = re.compile(rb"(?:[ \t]|\\?\r?\n)*")
_GAP = re.compile(rb"(?:[ \t]|\\?\r?\n)+")
_COMMENT = re.compile(rb"[ \t]+#")
_MORE_ON_LINE = re.compile(rb"[ \t]+(?![ \t\r\n#)]|\\\r?\n|\Z)")
_LAST_LINE = re.compile(rb"[ \t]*(\\?)(\r?\n)([ \t]*)\Z")
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/@%+=-]+")
_FARTHEST = 4_000  # bytes that are looked back over for the start of a separator


def needs_no_quotes(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None


def replace(page: Page, start: int, end: int, text: str, more: Sequence[str] = ()) -> Edit:
    """The word `start`..`end` as `text`, with `more` words beside it, each with the separator that stands there already."""
    if not more:
        return page.edit(start, end, text)
    between = _between(page, start, end)
    ordered = [*more, text] if _COMMENT.match(page.data, end) else [text, *more]
    return page.edit(start, end, between.join(ordered))


def insert(page: Page, start: int, end: int, words: Sequence[str]) -> Edit:
    """`words` beside the word `start`..`end`: behind it, or before it where a comment follows that belongs to it."""
    between = _between(page, start, end)
    if _COMMENT.match(page.data, end):
        return page.edit(start, start, "".join(word + between for word in words))
    return page.edit(end, end, "".join(between + word for word in words))


def remove_all(page: Page, places: Iterable[tuple[int, int]]) -> list[Edit]:
    """Takes words away; those that stand side by side go as one, so that no separator is claimed twice."""
    return [remove(page, start, end) for start, end in runs(page.data, places, _GAP)]


def runs(data: bytes, places: Iterable[tuple[int, int]], gap: re.Pattern[bytes]) -> list[tuple[int, int]]:
    """Stretches from the first to the last of neighbours between which there is nothing but a gap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(set(places)):
        if found and found[-1][1] <= start and gap.fullmatch(data, found[-1][1], start):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def remove(page: Page, start: int, end: int) -> Edit:
    """The word with its separator; a comment behind it stays."""
    data = page.data
    before = _separator(data, start)
    comment = _COMMENT.match(data, end)
    if comment and b"\n" in before:
        return page.edit(start, comment.end() - 1, "")
    others = _MORE_ON_LINE.match(data, end)
    if others and b"\n" in before:  # the line goes on: its start stays, since a comment may end the line above
        return page.edit(start, others.end(), "")
    if before:
        return page.edit(start - len(before), end, "")
    after = _AFTER.match(data, end)
    if after is None or not after.group():
        raise CannotEditError("nothing separates the word from what stands beside it")
    return page.edit(start, after.end(), "")


def _separator(data: bytes, at: int) -> bytes:
    """What stands between a word that begins at `at` and what comes before it."""
    match = _BEFORE.search(data, max(at - _FARTHEST, 0), at)
    return match.group() if match else b""


def _between(page: Page, start: int, end: int) -> str:
    """What to put between words here: a line end in the style of the place, or a blank."""
    before = _separator(page.data, start)
    if b"\n" not in before:
        following = _AFTER.match(page.data, end)
        after = following.group() if following else b""
        is_inside = (
            following is not None and following.end() < len(page.data) and page.data[following.end()] not in b")\"'"
        )
        if before or b"\n" not in after or not is_inside:
            return " "
        before = after
    last = _LAST_LINE.search(before)
    if last is None:
        return " "
    continuation, newline, indent = (part.decode() for part in last.groups())
    return (" \\" if continuation else "") + newline + indent
