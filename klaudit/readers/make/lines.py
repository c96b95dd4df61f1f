"""The logical lines of a makefile: what make reads as a recipe, and what as its own language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

_DEFINE = re.compile(rb"[ \t]*(?:(?:override|export|private)[ \t]+)*define[ \t]+[^\s:+?!=]")
_RULE_ENDS = re.compile(rb"[ \t]*(?:-?include|sinclude|define|vpath|export|unexport|override|private|undefine)\b")
_ASSIGNMENT = re.compile(rb"[ \t]*[^\s:#=+?!]+[ \t]*(?:\+|\?|!|:{1,3})?=")
_HASH = re.compile(rb"(?<!\\)(\\*)#")  # from the first backslash of a run alone, or a long run takes long
_END_OF_DEFINE = re.compile(rb"[ \t]*endef\b")


class Line(Struct, frozen=True):
    """One logical line: its text as make joins it, and for each byte of that its place in the file.

    A space that stands for a joint has the place -1 - n, before the n-th byte.
    `start`..`end` is all that it is written on; `is_recipe` says that a shell gets it.
    """

    text: bytes
    at: tuple[int, ...]
    start: int
    end: int
    is_recipe: bool = False

    def part(self, start: int, end: int) -> Line:
        return Line(self.text[start:end], self.at[start:end], self.start, self.end, self.is_recipe)

    def place(self, index: int) -> int:
        """Where in the file a byte of the text stands, or the joint that it stands for."""
        at = self.at[index]
        return at if at >= 0 else -1 - at

    def indented(self) -> int:
        """How many spaces and tabs it begins with."""
        return len(self.text) - len(self.text.lstrip())

    def stripped(self) -> Line:
        """Without spaces around it."""
        start = self.indented()
        return self.part(start, max(len(self.text.rstrip()), start))

    def __add__(self, other: Line) -> Line:
        """Both with a space between them, as `+=` puts them together."""
        if not self.text or not other.text:
            return self if self.text else other
        return Line(self.text + b" " + other.text, (*self.at, -1 - other.place(0), *other.at), self.start, other.end)


def logical_lines(data: bytes) -> Iterator[Line]:
    """All lines but empty ones and comments, in order; a `define` is one line up to its `endef`."""
    in_rule = False
    at = 0
    while at < len(data):
        start = at
        if in_rule and data[at : at + 1] == b"\t":
            line, at = _recipe_line(data, at)
            yield line
            continue
        line, at = _own_line(data, at)
        if not line.text:
            continue
        if _DEFINE.match(line.text):
            line, at = _define(data, line, at)
        in_rule = _opens_a_rule(line.text) or (in_rule and _is_conditional(line.text))
        yield Line(line.text, line.at, start, at)


def _opens_a_rule(text: bytes) -> bool:
    if _RULE_ENDS.match(text) or _ASSIGNMENT.match(text):
        return False
    return colon_of(text) is not None


def _has_recipe(text: bytes) -> bool:
    """Whether it is a rule with the first line of its recipe on the same line, before any comment."""
    before = text.partition(b"#")[0]
    return b";" in before and _opens_a_rule(before) and not _ASSIGNMENT.match(before[(colon_of(before) or 0) + 1 :])


def _is_conditional(text: bytes) -> bool:
    return re.match(rb"[ \t]*(?:ifeq|ifneq|ifdef|ifndef|else|endif)\b", text) is not None


def colon_of(text: bytes) -> int | None:
    """Where the first colon stands that is in no reference to a variable."""
    depth, at = 0, 0
    while at < len(text):
        if text[at : at + 1] == b"$" and text[at + 1 : at + 2] in (b"(", b"{"):
            depth += 1
            at += 2
            continue
        if depth and text[at : at + 1] in (b")", b"}"):
            depth -= 1
        elif not depth and text[at : at + 1] == b":":
            return at
        at += 1
    return None


def _recipe_line(data: bytes, at: int) -> tuple[Line, int]:
    """Up to a line end that no backslash takes away; those that are taken away stay, for the shell."""
    start = at
    text = bytearray()
    places: list[int] = []
    while True:
        if data[at : at + 1] == b"\t":
            at += 1
        end = _line_end(data, at)
        stop = end - 1 if data[end - 1 : end] == b"\r" else end  # make takes the return with the line feed
        goes_on = _goes_on(data[at:stop]) and end < len(data)
        text += data[at:stop]
        places += range(at, stop)
        if goes_on:
            text += b"\n"
            places.append(end)
        at = min(end + 1, len(data))
        if not goes_on or at >= len(data):
            return Line(bytes(text), tuple(places), start, at, True), at


def _own_line(data: bytes, at: int) -> tuple[Line, int]:
    """A line of make's own language without its comment; where lines are joined, one space stands for all around the joint."""
    start = at
    text = bytearray()
    places: list[int] = []
    while True:
        end = _line_end(data, at)
        stretch = data[at:end].rstrip(b"\r")
        goes_on = _goes_on(stretch) and end < len(data)
        if goes_on:
            stretch = stretch[:-1].rstrip()
        lead = len(stretch) - len(stretch.lstrip()) if text else 0
        text += stretch[lead:]
        places += range(at + lead, at + len(stretch))
        if goes_on:
            text += b" "
            places.append(-1 - (at + len(stretch)))
        at = min(end + 1, len(data))
        if not goes_on or at >= len(data):
            break
    kept = _without_comment(bytes(text))
    told = bytes(text[each] for each in kept)
    if not told.strip():
        return Line(b"", (), start, at), at
    return Line(told, tuple(places[each] for each in kept), start, at), at  # spaces at the end belong to a value


def _define(data: bytes, line: Line, at: int) -> tuple[Line, int]:
    depth = 1
    while at < len(data) and depth:
        end = _line_end(data, at)
        if data[at : at + 1] != b"\t":  # of a recipe in it
            depth += (_DEFINE.match(data, at, end) is not None) - (_END_OF_DEFINE.match(data, at, end) is not None)
        at = min(end + 1, len(data))
    return Line(line.text, line.at, line.start, at), at


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


def _goes_on(text: bytes) -> bool:
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


def _without_comment(text: bytes) -> Sequence[int]:
    """Which bytes stand before the comment; a backslash before `#` takes away its meaning, and is itself taken away.

    Behind the semicolon of a rule `#` is the shell's.
    """
    if b"#" not in text or _has_recipe(text):
        return range(len(text))
    kept: list[int] = []
    at = 0
    for match in _HASH.finditer(text):
        backslashes = len(match[1])
        kept += range(at, match.start() + backslashes // 2)
        if backslashes % 2 == 0:
            return kept
        kept.append(match.end() - 1)
        at = match.end()
    return [*kept, *range(at, len(text))]
