"""Text that remembers where each of its characters was written and what they hang on.

Inside this package shell text is a `str` with one character per *byte*, so that an index is a byte offset and nothing has to be mapped.
Bytes beyond ASCII are lone surrogates (as `surrogateescape` makes them), which are neither blanks nor letters nor digits to anyone;
`decode` gives the real characters back.

Everything is evaluated concretely, as on a machine where external commands succeed and print nothing.  A fragment whose characters
could differ on another machine carries the names they hang on; its `text` is then what that bare machine would give.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from klaudit.readers.source import Source


class Place(NamedTuple):
    """Bytes `start`..`end` of a source."""

    source: Source
    start: int
    end: int


class Fragment(NamedTuple):
    """Characters that were written in one place.

    `variable` is the variable whose assignment spells them.  `at` is where that assignment (or the command) uses them, if they were
    written elsewhere still.  `hangs_on` is empty for what is known; `unset` marks the nothing that an unset variable gives.
    """

    text: str
    source: Source
    start: int
    end: int
    variable: str | None = None
    hangs_on: tuple[str, ...] = ()
    unset: bool = False
    at: Place | None = None

    @property
    def place(self) -> Place:
        return Place(self.source, self.start, self.end)

    @property
    def is_spelled(self) -> bool:
        """Whether the bytes at its place are its characters."""
        return self.end - self.start == len(self.text) and self.source.data[self.start : self.end] == to_bytes(
            self.text
        )


Text: TypeAlias = tuple[Fragment, ...]

EMPTY: Text = ()

ROOT = "/\x1a"  # stands for the folder of the scanned tree in absolute paths, of which only the rest is known
ROOT_NAMES = frozenset({"PWD", "0", "BASH_SOURCE"})  # what that folder may hang on
_ROOT_RUNS = re.compile(r"/?\x1a|(?:[^/\x1a]|/(?!\x1a))+")

PRINTED = "\0printed"  # what commands print hangs on this, until the substitution that reads it gives it a name


def from_bytes(data: bytes) -> str:
    return data.decode("ascii", "surrogateescape")


def to_bytes(text: str) -> bytes:
    return text.encode("ascii", "surrogateescape")


def from_path(path: str) -> str:
    """A path of the tree as a script spells it."""
    return from_bytes(os.fsencode(path))


def to_path(text: str) -> str:
    """A path as a script spells it, as the tree has it."""
    return text if text.isascii() else os.fsdecode(to_bytes(text))


def decode(text: str) -> str:
    """The characters meant; what is not UTF-8 is replaced."""
    return text if text.isascii() else to_bytes(text).decode("utf-8", "replace")


def plain(text: Text) -> str:
    """The characters alone."""
    if len(text) == 1:
        return text[0].text
    return "".join([fragment.text for fragment in text])


def length(text: Text) -> int:
    return sum(len(fragment.text) for fragment in text)


def hangs_on(text: Text) -> tuple[str, ...]:
    """All that the text hangs on, each name once, in order."""
    if not any(fragment.hangs_on for fragment in text):
        return ()
    return tuple(dict.fromkeys(name for fragment in text for name in fragment.hangs_on))


def merge_names(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in names for name in group)) if any(names) else ()


def at_place(characters: str, place: Place, hangs: tuple[str, ...] = ()) -> Text:
    """Computed characters, which stand where the computation was written.  Nothing at all for nothing known."""
    if not characters and not hangs:
        return EMPTY
    return (Fragment(characters, place.source, place.start, place.end, hangs_on=hangs),)


def located(characters: str, place: Place, hangs: tuple[str, ...]) -> Text:
    """Characters computed from paths: where the tree lies is unknown, what follows it in a path is not."""
    if not hangs or not ROOT_NAMES.issuperset(hangs):
        return at_place(characters, place, hangs)
    pieces: list[Fragment] = []
    for run in _ROOT_RUNS.finditer(characters):
        unknown = hangs if ROOT[-1] in run.group() else ()
        pieces += at_place(run.group(), place, unknown)
    return tuple(pieces)


def cut(text: Text, start: int, end: int) -> Text:
    """Characters `start`..`end`; empty fragments (unset or unknown) inside or at either edge are kept."""
    if len(text) == 1 and start == 0 and end == len(text[0].text):
        return text
    kept, offset = [], 0
    for fragment in text:
        size = len(fragment.text)
        if size == 0:
            if start <= offset <= end:
                kept.append(fragment)
        elif offset < end and offset + size > start:
            kept.append(_slice(fragment, max(start - offset, 0), min(end - offset, size)))
        offset += size
        if offset > end:
            break
    return tuple(kept)


def _slice(fragment: Fragment, start: int, end: int) -> Fragment:
    if start == 0 and end == len(fragment.text):
        return fragment
    if not fragment.hangs_on and fragment.is_spelled:
        return fragment._replace(
            text=fragment.text[start:end], start=fragment.start + start, end=fragment.start + end, at=None
        )
    return fragment._replace(text=fragment.text[start:end])


def used_at(text: Text, place: Place) -> Text:
    """The same characters, noting the place that uses them."""
    return tuple(
        [
            Fragment(characters, source, start, end, variable, hangs, unset, place)
            for characters, source, start, end, variable, hangs, unset, _ in text
        ]
    )


def owned_by(text: Text, variable: str, within: Place | None) -> Text:
    """Name `variable` as the owner of what has none, and of all that was spelled `within` its assignment."""
    if within is None:
        return tuple([_with_owner(fragment, variable) if fragment.variable is None else fragment for fragment in text])
    source, start, end = within
    return tuple(
        [
            _with_owner(fragment, variable)
            if fragment[4] is None or (start <= fragment[2] and fragment[3] <= end and fragment[1] is source)
            else fragment
            for fragment in text
        ]
    )


def _with_owner(fragment: Fragment, variable: str) -> Fragment:
    characters, source, start, end, _, hangs, unset, at = fragment
    return Fragment(characters, source, start, end, variable, hangs, unset, at)


def join(texts: Iterable[Text], separator: str) -> Text:
    """The texts with known characters between them, which are written nowhere: they stand at the end of what precedes them."""
    joined: list[Fragment] = []
    for text in texts:
        if joined and separator:
            before = joined[-1]
            joined.append(Fragment(separator, before.source, before.end, before.end, before.variable))
        joined.extend(text)
    return tuple(joined)
