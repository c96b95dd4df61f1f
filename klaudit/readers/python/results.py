"""What an expression comes to, as far as the text tells, and where each part of it was written.

Offsets are into the module's data.  A result's `start`..`end` is the literal that gave it, which need not stand where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from klaudit.model import Unknown, Value

MAX_TEXT = 200_000  # characters of one text; doubling a string in a loop of names must not eat the memory
MAX_ITEMS = 10_000
REST = "*"  # the text of an unknown that stands for any number of items


class Fragment(Struct):
    """Characters that were written in one place; `text` is None where they cannot be known.

    `verbatim`: spelled there byte by byte.  Otherwise (an escape, a number put into a string) the whole range stands for each character.
    """

    text: str | None
    start: int
    end: int
    verbatim: bool = False
    variable: str | None = None
    hangs_on: tuple[str, ...] = ()
    site: tuple[int, int] | None = None  # where a name brings these characters in, None where they are written in place


class Constant(Struct):
    value: None | bool | int | float
    start: int
    end: int


class Text(Struct):
    fragments: tuple[Fragment, ...]
    start: int
    end: int

    @property
    def known(self) -> str | None:
        parts = [fragment.text for fragment in self.fragments]
        return None if None in parts else "".join(part for part in parts if part is not None)

    @property
    def hangs_on(self) -> tuple[str, ...]:
        return unique(name for fragment in self.fragments for name in fragment.hangs_on)

    @property
    def used_range(self) -> tuple[int, int]:
        """Where the expression that gives the text spells it, the names in it included."""
        if not self.fragments:
            return self.start, self.end
        first, last = self.fragments[0], self.fragments[-1]
        start, end = (first.site or (first.start, first.end))[0], (last.site or (last.start, last.end))[1]
        return (start, end) if start <= end else (first.site or (first.start, first.end))

    @property
    def shown(self) -> str:
        """The text with `{name}` in place of what is unknown."""
        return "".join(
            "{" + ",".join(part.hangs_on or ("?",)) + "}" if part.text is None else part.text for part in self.fragments
        )


class Items(Struct):
    """A list, tuple or set; `open` names what may add items that cannot be seen."""

    items: tuple[Result, ...]
    start: int
    end: int
    open: tuple[str, ...] = ()


class Pair(Struct):
    """One keyword or dict entry: the whole of it at `start`..`end`, its value expression at `value_start`..`value_end`."""

    key: str
    value: Result
    start: int
    end: int
    value_start: int
    value_end: int


class Table(Struct):
    """A dict; later pairs win; `open` names what may add keys that cannot be seen."""

    pairs: tuple[Pair, ...]
    start: int
    end: int
    open: tuple[str, ...] = ()


class Made(Struct):
    """What a call of a class (or of something named like one) returns, with the keywords it got."""

    symbol: str
    pairs: tuple[Pair, ...]
    start: int
    end: int
    open: tuple[str, ...] = ()


class Opaque(Struct):
    """What cannot be known: `hangs_on` names what decides it; `maybe` is the value it has under a condition that may hold."""

    hangs_on: tuple[str, ...]
    start: int
    end: int
    text: str = ""
    maybe: Result | None = None


Result: TypeAlias = Constant | Text | Items | Table | Made | Opaque


def value_of(result: Result) -> Value:
    """The plain value, with Unknown in place of what cannot be known."""
    match result:
        case Constant():
            return result.value
        case Text():
            known = result.known
            return known if known is not None else Unknown(result.hangs_on, result.shown)
        case Items():
            values: list[Value] = [value_of(item) for item in result.items]
            return [*values, Unknown(result.open)] if result.open else values
        case Table():
            return Unknown(result.open) if result.open else {pair.key: value_of(pair.value) for pair in result.pairs}
        case Made():
            return Unknown((f"{result.symbol}()",), result.symbol)
        case Opaque():
            return Unknown(result.hangs_on, result.text)


def truth(result: Result) -> bool | None:
    """Whether the value counts as true, None where that cannot be known."""
    match result:
        case Constant():
            return bool(result.value)
        case Text():
            return (
                bool(result.known)
                if result.known is not None
                else True
                if any(f.text for f in result.fragments)
                else None
            )
        case Items():
            return _filled(result.items, result.open)
        case Table():
            return _filled(tuple(pair.value for pair in result.pairs), result.open)
        case _:
            return None


def _filled(parts: tuple[Result, ...], unseen: tuple[str, ...]) -> bool | None:
    """Whether a container has anything in it; what stands there under a condition may be missing."""
    if any(not isinstance(part, Opaque) or (part.maybe is None and part.text != REST) for part in parts):
        return True
    return None if parts or unseen else False


def hangs_on(results: Iterable[Result]) -> tuple[str, ...]:
    """What the unknown ones among several results hang on."""
    names: list[str] = []
    for result in results:
        match result:
            case Opaque() | Text():
                names.extend(result.hangs_on)
            case Items():
                names.extend((*hangs_on(result.items), *result.open))
            case Table():
                names.extend((*hangs_on(pair.value for pair in result.pairs), *result.open))
            case Made():
                names.append(f"{result.symbol}()")
            case Constant():
                pass
    return unique(names)


def used_at(fragment: Fragment, start: int, end: int) -> Fragment:
    """The fragment as a name at `start`..`end` brings it in."""
    f = fragment
    return Fragment(f.text, f.start, f.end, f.verbatim, f.variable, f.hangs_on, (start, end))


def unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
