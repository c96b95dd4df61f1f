"""Make's variables: what a reference to one expands to, every byte of it with its place in the file.

What make alone can tell (functions, automatic variables, what is set under a condition or by an included file) is unknown.  A name that
the file does not set is asked of the environment, where the shell of the recipe looks too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from klaudit.readers.make.lines import Line

MAX_DEPTH = 30  # variables in variables
MAX_BYTES = 2_000_000  # of all expansions of one file
_MAX_VARIABLES = 10_000

_PLAIN = re.compile(rb"[A-Za-z_][\w.-]*")
_OF_THE_SHELL = re.compile(rb"[A-Za-z_]\w*")
# What make sets by itself; others come from the environment alone.
_BUILT_IN = frozenset(
    b"AR ARFLAGS AS CC CFLAGS CO CPP CPPFLAGS CURDIR CXX CXXFLAGS FC GET LD LDFLAGS LDLIBS LEX LINT M2C MAKECMDGOALS MAKEFILES"
    b" MAKEFILE_LIST MAKEFLAGS MAKEINFO MAKELEVEL MAKE_HOST MAKE_TERMERR MAKE_TERMOUT MAKE_VERSION MAKEOVERRIDES OBJC PC RM SHELL"
    b" SUFFIXES TANGLE TEX TEXI2DVI WEAVE YACC".split()
)


class Part(Struct, frozen=True):
    """A stretch of an expansion.

    `text` stands at `start`..`end` as it is where `is_copied`, else it stands for what is written there.  `unknown` names what decides a
    text that cannot be known, `asked` a variable of the environment.
    """

    text: bytes
    start: int
    end: int
    is_copied: bool = False
    unknown: str = ""
    asked: str = ""


class Variable(Struct, frozen=True):
    """`line` is expanded whenever it is used, `parts` are so already; one that has neither is unknown."""

    line: Line | None = None
    parts: tuple[Part, ...] | None = None

    @property
    def is_known(self) -> bool:
        return self.line is not None or self.parts is not None


UNKNOWN = Variable()


class TooMuchError(Exception):
    """Variables that expand to more than anyone writes, or to themselves."""


class Room:
    """How much may still be made of the variables of a file, whichever of its tables makes it."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    @property
    def is_used_up(self) -> bool:
        return self._left < 0

    def use(self, count: int) -> None:
        """Raises TooMuchError."""
        self._left -= count + 1
        if self._left < 0:
            raise TooMuchError(f"its variables expand to more than {MAX_BYTES // 1_000_000} MB")


class Table:
    """The variables of a file at one point of it."""

    def __init__(self) -> None:
        self._variables: dict[bytes, Variable] = {}
        self._overridden: frozenset[bytes] = frozenset()
        self._has_included = False
        self.room = Room()

    def copy(self) -> Table:
        other = Table()
        other._variables = {**self._variables}
        other._overridden = self._overridden
        other._has_included = self._has_included
        other.room = self.room
        return other

    def include(self) -> None:
        """A file that is not read may set anything."""
        if self._variables:
            self.room.use(len(self._variables))
            self._variables = {}
        self._has_included = True

    def names(self) -> Iterator[bytes]:
        return iter(self._variables)

    def undefine(self, name: bytes) -> None:
        """From here on it is not set."""
        self._variables.pop(name, None)

    def override(self, name: bytes) -> None:
        """From here on only what says `override` sets it."""
        if name not in self._overridden:
            self.room.use(len(self._overridden))
            self._overridden |= {name}

    def declare(self, name: bytes, line: Line) -> None:
        """`export NAME`: from here on it counts as set, to what the environment has."""
        if name not in self._variables and _OF_THE_SHELL.fullmatch(name):
            place = (line.place(0), line.place(-1) + 1)
            self._variables[name] = Variable(parts=tuple(self._value(name, place, {}, 0)))

    def forget(self, name: bytes) -> None:
        """From here on nobody knows what it is."""
        self._variables[name] = UNKNOWN

    def assign(self, name: bytes, operator: bytes, value: Line, *, overrides: bool = False) -> None:
        """`=`, `:=`, `?=`, `+=` and their kin.  Raises TooMuchError."""
        if name in self._overridden and not overrides:
            return
        if len(self._variables) >= _MAX_VARIABLES:
            raise TooMuchError(f"more than {_MAX_VARIABLES} variables")
        known = self._variables.get(name)
        if operator == b"?=" and (known is not None or self._has_included):
            if known is None:
                self.forget(name)
            return
        if operator == b"!=":
            self.forget(name)
        elif operator == b"+=" and (known is not None or self._has_included):
            self._variables[name] = self._appended(known or UNKNOWN, value)
        elif operator in (b":=", b"::=", b":::="):
            self._variables[name] = Variable(parts=tuple(self.expand(value)))
        else:
            self._variables[name] = Variable(line=value)

    def _appended(self, known: Variable, value: Line) -> Variable:
        if known.line is not None:
            self.room.use(len(known.line.text) + len(value.text))
            return Variable(line=known.line + value)
        if known.parts is None:
            return UNKNOWN
        if not value.text:
            return known
        self.room.use(len(known.parts))
        joint = Part(b" ", value.place(0), value.place(0))
        return Variable(parts=(*known.parts, *((joint,) if known.parts else ()), *self.expand(value)))

    def expand(
        self, line: Line, automatic: Mapping[bytes, tuple[Part, ...]] | None = None, depth: int = 0
    ) -> list[Part]:
        """A text with every reference replaced.  `automatic` are known ones such as `$@`.  Raises TooMuchError."""
        if depth > MAX_DEPTH:
            raise TooMuchError("variables that expand to themselves, or too deep")
        parts: list[Part] = []
        text, at = line.text, 0
        while at < len(text):
            dollar = text.find(b"$", at)
            stop = len(text) if dollar < 0 else dollar
            parts += self._copied(line, at, stop)
            if dollar < 0:
                break
            end, name = _reference(text, dollar)
            place = (line.place(dollar), line.place(end - 1) + 1)
            if name == b"$":
                parts.append(Part(b"$", *place))
            else:
                parts += self._value(name, place, automatic or {}, depth)
            at = end
            self.room.use(0 if not parts else len(parts[-1].text) + 1)
        return parts

    def value_of(self, name: bytes) -> list[Part] | None:
        """What a variable expands to; None where the file does not set it.  Raises TooMuchError."""
        is_set = name in self._variables or self._has_included
        return self._value(name, (0, 0), {}, 0) if is_set else None

    def _value(
        self, name: bytes, place: tuple[int, int], automatic: Mapping[bytes, tuple[Part, ...]], depth: int
    ) -> list[Part]:
        shown = name.decode("utf-8", "replace")
        if name in automatic:
            return list(automatic[name])
        if not _PLAIN.fullmatch(name):  # a function, a substitution, an automatic variable, a name that is put together
            return [Part(b"", *place, unknown=(re.match(r"[\w.-]*", shown) or [""])[0] or "make")]
        if name == b"MAKE":
            return [Part(b"make", *place)]
        known = self._variables.get(name)
        if known is None:
            if name in _BUILT_IN or self._has_included or not _OF_THE_SHELL.fullmatch(name):
                return [Part(b"", *place, unknown=shown)]
            return [Part(b"", *place, asked=shown)]
        if known.line is not None:
            return self.expand(known.line, automatic, depth + 1)
        if known.parts is not None:
            self.room.use(sum(len(part.text) + 1 for part in known.parts))
            return list(known.parts)
        return [Part(b"", *place, unknown=shown)]

    def _copied(self, line: Line, start: int, end: int) -> Iterator[Part]:
        """A stretch without references, in runs that stand together in the file."""
        self.room.use(end - start)
        while start < end:
            stop = start + 1
            if line.at[start] < 0:
                yield Part(line.text[start:stop], line.place(start), line.place(start))
                start = stop
                continue
            while stop < end and line.at[stop] == line.at[stop - 1] + 1:
                stop += 1
            yield Part(line.text[start:stop], line.at[start], line.at[stop - 1] + 1, is_copied=True)
            start = stop


def _reference(text: bytes, dollar: int) -> tuple[int, bytes]:
    """Where a reference ends, and what it names."""
    opening = text[dollar + 1 : dollar + 2]
    closing = {b"(": b")", b"{": b"}"}.get(opening)
    if closing is None:
        return min(dollar + 2, len(text)), opening
    depth, at = 0, dollar + 1
    while at < len(text):
        char = text[at : at + 1]
        depth += (char == opening) - (char == closing)
        at += 1
        if not depth:
            return at, text[dollar + 2 : at - 1]
    return len(text), b" "  # left open: an error of make
