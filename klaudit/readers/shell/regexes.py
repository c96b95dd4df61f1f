"""Regular expressions as `[[ =~ ]]`, grep and sed know them (POSIX, extended or basic), without groups to refer back to."""

from __future__ import annotations

import re

from klaudit.readers.shell.automaton import Automaton, Characters, Choice, Concatenation, Node, Repeat, TooCostlyError
from klaudit.readers.shell.patterns import parse_bracket

_MAX_GROUPS = 20
_MAX_REPEATS = 20
_BOUND = re.compile(r"\{(\d{1,4})(,?)(\d{0,4})\}")


class Regex:
    """Raises TooCostlyError for what is not supported, in the constructor as in the methods."""

    def __init__(self, pattern: str, *, quoted: list[bool] | None = None) -> None:
        self._pattern = pattern
        self._quoted = quoted or [False] * len(pattern)
        self._at_start = self._is(0, "^")
        self._at_end = len(pattern) > self._at_start and self._is(len(pattern) - 1, "$") and not self._is_escaped()
        self._end = len(pattern) - self._at_end
        node, index = self._choice(int(self._at_start), 0)
        if index < self._end:
            raise TooCostlyError("unbalanced parenthesis")
        self._automaton = Automaton(node)

    def search(self, text: str) -> tuple[int, int] | None:
        """The leftmost longest match."""
        for start in range(1 if self._at_start else len(text) + 1):
            ends = self._automaton.ends(text, start)
            if self._at_end:
                ends = [end for end in ends if end == len(text)]
            if ends:
                return start, ends[-1]
        return None

    def find_all(self, text: str, *, only_first: bool) -> list[tuple[int, int]]:
        """Matches from left to right, empty ones left out."""
        if self._at_end or self._at_start:
            found = self.search(text)
            return [found] if found is not None and found[1] > found[0] else []
        return self._automaton.find_all(text, only_first=only_first)

    def _is_escaped(self) -> bool:
        return self._is(len(self._pattern) - 2, "\\") if len(self._pattern) > 1 else False

    def _is(self, index: int, characters: str) -> bool:
        return index < len(self._pattern) and not self._quoted[index] and self._pattern[index] in characters

    def _choice(self, index: int, depth: int) -> tuple[Node, int]:
        if depth > _MAX_GROUPS:
            raise TooCostlyError("groups nested too deeply")
        options = []
        while True:
            node, index = self._sequence(index, depth)
            options.append(node)
            if not (index < self._end and self._is(index, "|")):
                return (Choice(tuple(options)) if len(options) > 1 else node), index
            index += 1

    def _sequence(self, index: int, depth: int) -> tuple[Node, int]:
        parts: list[Node] = []
        while index < self._end and not self._is(index, "|") and not (depth and self._is(index, ")")):
            node, index = self._atom(index, depth)
            while index < self._end and self._is(index, "*+?{"):
                node, index = self._repeated(node, index)
            parts.append(node)
        return Concatenation(tuple(parts)), index

    def _atom(self, index: int, depth: int) -> tuple[Node, int]:
        if self._is(index, "("):
            node, index = self._choice(index + 1, depth + 1)
            return node, index + 1
        if self._is(index, "."):
            return Characters(None), index + 1
        if self._is(index, "[") and (bracket := parse_bracket(self._pattern, index)) is not None:
            return Characters(bracket[0]), bracket[1]
        if self._is(index, "^$"):
            raise TooCostlyError("anchor inside the expression")
        if self._is(index, "\\") and index + 1 < self._end:
            index += 1
            if self._pattern[index].isalnum() or self._pattern[index] in "<>`'":
                raise TooCostlyError("escape not supported")
        return Characters(frozenset(self._pattern[index])), index + 1

    def _repeated(self, node: Node, index: int) -> tuple[Node, int]:
        if not self._is(index, "{"):
            sign = self._pattern[index]
            return Repeat(node, "*" if sign == "*" else "+" if sign == "+" else "?"), index + 1
        bound = _BOUND.match(self._pattern, index)
        if bound is None:
            raise TooCostlyError("bad repetition")
        low = int(bound[1])
        high = int(bound[3]) if bound[3] else None if bound[2] else low
        if max(low, high or 0) > _MAX_REPEATS:
            raise TooCostlyError("repetition too large")
        optional: list[Node] = [Repeat(node, "*")] if high is None else [Repeat(node, "?")] * (high - low)
        return Concatenation((*[node] * low, *optional)), bound.end()


def from_basic(pattern: str) -> str:
    """A basic regular expression as an extended one."""
    pieces, index = [], 0
    while index < len(pattern):
        character = pattern[index]
        if character == "[" and (bracket := parse_bracket(pattern, index)) is not None:
            pieces.append(pattern[index : bracket[1]])
            index = bracket[1]
            continue
        if character == "\\" and index + 1 < len(pattern):
            following = pattern[index + 1]
            pieces.append(following if following in "(){}|+?" else character + following)
            index += 2
            continue
        pieces.append("\\" + character if character in "(){}|+?" else character)
        index += 1
    return "".join(pieces)
