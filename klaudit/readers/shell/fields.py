"""From expanded chunks to fields: word splitting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from klaudit.readers.shell.text import EMPTY, Fragment, Place, Text, cut, hangs_on, merge_names, plain

_DEFAULT = " \t\n"
_BLANK = re.compile(r"[ \t\n]")
_RUNS = re.compile(r"[^ \t\n]+")


class Chunk(NamedTuple):
    """Part of a word after expansion.

    `plain` characters were written unquoted, `quoted` ones inside quotes; `split` ones come from an unquoted expansion and may fall
    apart into several words.  `break` ends a word inside `"$@"`; its text stands between them where nothing is split.  `place` is the
    word that gave all of an array's element, `several` what that element's being one hangs on.
    """

    text: Text
    mode: Literal["plain", "quoted", "split", "break"]
    place: Place | None = None
    several: tuple[str, ...] = ()


class Field(NamedTuple):
    """One word of a command; `place` is where it was written if that is elsewhere as a whole.

    `several` is what it hangs on that this is one word and not none or many.
    """

    text: Text
    place: Place | None = None
    several: tuple[str, ...] = ()


def joined(chunks: Iterable[Chunk]) -> Text:
    """The chunks as one text, where nothing is split."""
    return tuple([fragment for chunk in chunks for fragment in chunk.text])


def split(chunks: Sequence[Chunk], ifs: str) -> list[Field]:
    """The chunks of one word as fields."""
    if ifs == _DEFAULT and chunks and chunks[0].mode in ("plain", "quoted"):
        pieces = _unbroken(chunks)
        if pieces is not None:
            return [Field(pieces, None, merge_names(*[chunk.several for chunk in chunks]))]
    return _Splitter(ifs).split(chunks)


def _unbroken(chunks: Sequence[Chunk]) -> Text | None:
    """All chunks together if nothing in them splits, which is nearly always so."""
    pieces: Text = EMPTY
    for text, mode, _, _ in chunks:
        if mode == "break" or (mode == "split" and any(_BLANK.search(fragment.text) for fragment in text)):
            return None
        pieces += text
    return pieces


class _Splitter:
    def __init__(self, ifs: str) -> None:
        self._ifs = ifs
        self._fields: list[Field] = []
        self._current: list[Fragment] | None = None  # the field begun, if one is
        self._unset: list[Fragment] = []  # expansions to nothing, which are shown only if a field comes of it
        self._place: Place | None = None
        self._several: tuple[str, ...] = ()

    def split(self, chunks: Sequence[Chunk]) -> list[Field]:
        self._place = chunks[0].place if chunks and (len(chunks) == 1 or chunks[1].mode == "break") else None
        for index, chunk in enumerate(chunks):
            if chunk.several:
                self._several = merge_names(self._several, chunk.several)
            if chunk.mode == "break":
                self._finish()
                is_whole = index + 2 >= len(chunks) or chunks[index + 2].mode == "break"
                self._place = chunks[index + 1].place if index + 1 < len(chunks) and is_whole else None
            elif chunk.mode != "split":
                self._extend(chunk.text)
            elif any(fragment.text for fragment in chunk.text):
                self._split(chunk.text)
            elif hangs_on(chunk.text):
                self._extend(chunk.text)  # nothing on a bare machine, but nobody knows
                self._several = merge_names(self._several, hangs_on(chunk.text))
            elif self._current is None:
                self._unset += chunk.text
            else:
                self._extend(chunk.text)
        self._finish()
        return self._fields

    def _extend(self, text: Text) -> None:
        if self._current is None:
            self._current = self._unset
            self._unset = []
        self._current += text

    def _finish(self) -> None:
        if self._current is not None:
            self._fields.append(Field(tuple(self._current), self._place, self._several))
        self._current, self._unset, self._several = None, [], ()

    def _split(self, text: Text) -> None:
        characters = plain(text)
        position, is_first = 0, True
        for start, end in _runs(characters, self._ifs):
            if start > position or not is_first:
                self._finish()
            if start > 0 or end < len(characters):
                self._place = None
            self._extend(cut(text, start, end))
            position, is_first = end, False
        if position < len(characters):
            self._finish()


def _runs(text: str, ifs: str) -> Iterator[tuple[int, int]]:
    """The stretches between separators.  Blanks run together; any other separator ends a field, even an empty one."""
    if ifs == _DEFAULT:
        for run in _RUNS.finditer(text):
            yield run.span()
        return
    if not ifs:
        yield 0, len(text)
        return
    blanks = "".join(character for character in ifs if character in _DEFAULT)
    position, end = 0, len(text)
    while position < end and text[position] in blanks:
        position += 1
    while position < end:
        start = position
        while position < end and text[position] not in ifs:
            position += 1
        yield start, position
        while position < end and text[position] in blanks:
            position += 1
        if position < end and text[position] in ifs:
            position += 1
            while position < end and text[position] in blanks:
                position += 1
