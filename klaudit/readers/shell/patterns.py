"""Globs: `*`, `?`, `[..]`, and the extended `@(..)`, `?(..)`, `*(..)`, `+(..)`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from klaudit.readers.shell.automaton import (
    Automaton,
    Characters,
    Choice,
    Concatenation,
    Node,
    Repeat,
    TooCostlyError,
    reverse,
)
from klaudit.readers.shell.text import from_bytes

_ALL = frozenset(from_bytes(bytes(range(256))))
_MAX_GROUPS = 20

CLASSES = {
    "alpha": frozenset(c for c in map(chr, range(128)) if c.isalpha()),
    "digit": frozenset("0123456789"),
    "alnum": frozenset(c for c in map(chr, range(128)) if c.isalnum()),
    "upper": frozenset(c for c in map(chr, range(128)) if c.isupper()),
    "lower": frozenset(c for c in map(chr, range(128)) if c.islower()),
    "space": frozenset(" \t\n\r\f\v"),
    "blank": frozenset(" \t"),
    "punct": frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "xdigit": frozenset("0123456789abcdefABCDEF"),
}


class Glob:
    """A pattern given as runs of (characters, whether they stand for themselves)."""

    def __init__(self, runs: Sequence[tuple[str, bool]]) -> None:
        text = "".join(characters for characters, _ in runs)
        self._quoted = [is_literal for characters, is_literal in runs for _ in characters]
        self._text = text
        special = any(character in "*?[" and not quoted for character, quoted in zip(text, self._quoted, strict=True))
        self._literal = None if special or self._has_group() else self._unescaped()

    @property
    def literal(self) -> str | None:
        """The only text it matches, None if it has special characters."""
        return self._literal

    def matches(self, text: str) -> bool:
        """Raises TooCostlyError."""
        return text == self._literal if self._literal is not None else self._automaton.matches(text)

    def prefix(self, text: str, *, longest: bool) -> int | None:
        """Length of the shortest or longest matching prefix, None if there is none.  Raises TooCostlyError."""
        if self._literal is not None:
            return len(self._literal) if text.startswith(self._literal) else None
        ends = self._automaton.ends(text, 0)
        return (ends[-1] if longest else ends[0]) if ends else None

    def suffix(self, text: str, *, longest: bool) -> int | None:
        """Length of the shortest or longest matching suffix, None if there is none.  Raises TooCostlyError."""
        if self._literal is not None:
            return len(self._literal) if text.endswith(self._literal) else None
        ends = self._backwards.ends(text[::-1], 0)
        return (ends[-1] if longest else ends[0]) if ends else None

    def find_all(self, text: str, *, only_first: bool) -> list[tuple[int, int]]:
        """Leftmost longest matches, none of them empty.  Raises TooCostlyError."""
        if self._literal is None:
            return self._automaton.find_all(text, only_first=only_first)
        found, at = [], text.find(self._literal) if self._literal else -1
        while at != -1:
            found.append((at, at + len(self._literal)))
            at = -1 if only_first else text.find(self._literal, at + len(self._literal))
        return found

    @cached_property
    def _automaton(self) -> Automaton:
        return Automaton(self._parse(0, 0)[0])

    @cached_property
    def _backwards(self) -> Automaton:
        return Automaton(reverse(self._parse(0, 0)[0]))

    def _unescaped(self) -> str:
        """The text without the backslashes that came out of an expansion, where they still quote."""
        kept, index = [], 0
        while index < len(self._text):
            if self._is(index, "\\") and index + 1 < len(self._text):
                index += 1
            kept.append(self._text[index])
            index += 1
        return "".join(kept)

    def _is(self, index: int, characters: str) -> bool:
        return index < len(self._text) and not self._quoted[index] and self._text[index] in characters

    def _has_group(self) -> bool:
        return any(self._is(i, "@?*+!") and self._is(i + 1, "(") for i in range(len(self._text) - 1))

    def _parse(self, index: int, depth: int) -> tuple[Node, int]:
        """Up to the end, or inside a group up to its `|` or `)`."""
        parts: list[Node] = []
        while index < len(self._text):
            if depth and self._is(index, "|)"):
                break
            if self._is(index, "@?*+!") and self._is(index + 1, "("):
                node, index = self._group(index, depth)
                parts.append(node)
            elif self._is(index, "*"):
                parts.append(Repeat(Characters(None), "*"))
                index += 1
            elif self._is(index, "?"):
                parts.append(Characters(None))
                index += 1
            elif self._is(index, "[") and (bracket := parse_bracket(self._text, index)) is not None:
                parts.append(Characters(bracket[0]))
                index = bracket[1]
            else:
                index += self._is(index, "\\") and index + 1 < len(self._text)
                parts.append(Characters(frozenset(self._text[index])))
                index += 1
        return Concatenation(tuple(parts)), index

    def _group(self, index: int, depth: int) -> tuple[Node, int]:
        sign = self._text[index]
        if depth >= _MAX_GROUPS or sign == "!":
            raise TooCostlyError("pattern not supported")
        options, index = [], index + 1
        while True:
            node, index = self._parse(index + 1, depth + 1)
            options.append(node)
            if not self._is(index, "|"):
                break
        choice = Choice(tuple(options))
        if sign == "@":
            return choice, index + 1
        return Repeat(choice, "*" if sign == "*" else "+" if sign == "+" else "?"), index + 1


def parse_bracket(text: str, index: int) -> tuple[frozenset[str], int] | None:
    """The set that the bracket expression at `index` stands for, and the position after it; None if it is not closed."""
    start = index + 1
    negated = text[start : start + 1] in ("!", "^")
    position = start + negated
    allowed: set[str] = set()
    is_first = True
    while position < len(text) and (is_first or text[position] != "]"):
        is_first = False
        if text.startswith("[:", position) and (end := text.find(":]", position)) != -1:
            allowed |= CLASSES.get(text[position + 2 : end], frozenset())
            position = end + 2
            continue
        position += text[position] == "\\" and position + 1 < len(text)
        low = text[position]
        if text[position + 1 : position + 2] == "-" and text[position + 2 : position + 3] not in ("", "]"):
            allowed.update(character for character in _ALL if low <= character <= text[position + 2])
            position += 3
        else:
            allowed.add(low)
            position += 1
    if position >= len(text):
        return None
    return (_ALL - allowed if negated else frozenset(allowed)), position + 1
