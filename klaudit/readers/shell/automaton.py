"""Matching in time linear in text times pattern, whatever the pattern: a hostile script must not be able to stall us.

Globs and regular expressions are both turned into a Node, which is compiled to a small non-deterministic automaton.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

_MAX_STATES = 2_000
_MAX_STEPS = 2_000_000


class TooCostlyError(ValueError):
    """A pattern too large, or a match that takes too long."""


class Characters(Struct, frozen=True):
    """One character out of a set; out of all if None."""

    allowed: frozenset[str] | None


class Concatenation(Struct, frozen=True):
    parts: tuple[Node, ...]


class Choice(Struct, frozen=True):
    options: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """`*` (any number of times), `+` (at least once) or `?` (at most once)."""

    part: Node
    times: Literal["*", "+", "?"]


Node: TypeAlias = Characters | Concatenation | Choice | Repeat


def literal(text: str) -> Node:
    return Concatenation(tuple(Characters(frozenset(character)) for character in text))


def reverse(node: Node) -> Node:
    """The node that matches the same texts written backwards."""
    if isinstance(node, Concatenation):
        return Concatenation(tuple(reverse(part) for part in reversed(node.parts)))
    if isinstance(node, Choice):
        return Choice(tuple(reverse(option) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(reverse(node.part), node.times)
    return node


class Automaton:
    """State i either reads one of `_reads[i]` and goes to `_next[i][0]`, or goes to all of `_next[i]` reading nothing."""

    def __init__(self, node: Node) -> None:
        self._reads: list[frozenset[str] | None | Literal[False]] = []
        self._next: list[tuple[int, ...]] = []
        self._steps = 0
        self._final = self._state()
        self._start = self._compile(node, self._final)

    def matches(self, text: str) -> bool:
        return len(text) in self.ends(text, 0)

    def ends(self, text: str, start: int) -> list[int]:
        """All positions where a match that begins at `start` may end, ascending."""
        found = []
        current = self._closure([self._start])
        position = start
        while current:
            if self._final in current:
                found.append(position)
            if position == len(text):
                break
            character = text[position]
            self._steps += len(current) + 1
            if self._steps > _MAX_STEPS:
                raise TooCostlyError("matching takes too long")
            following = []
            for state in current:
                reads = self._reads[state]
                if reads is not False and (reads is None or character in reads):
                    following.append(self._next[state][0])
            current = self._closure(following)
            position += 1
        return found

    def find_all(self, text: str, *, only_first: bool = False, at_start: bool = False) -> list[tuple[int, int]]:
        """The leftmost longest matches from left to right, empty ones left out."""
        found = []
        position = 0
        while position < len(text):
            end = max(self.ends(text, position), default=position)
            if end > position:
                found.append((position, end))
                if only_first:
                    break
            if at_start:
                break
            position = max(end, position + 1)
        return found

    def _state(self, reads: frozenset[str] | None | Literal[False] = False, *following: int) -> int:
        if len(self._reads) >= _MAX_STATES:
            raise TooCostlyError("pattern too large")
        self._reads.append(reads)
        self._next.append(following)
        return len(self._reads) - 1

    def _compile(self, node: Node, following: int) -> int:
        """The state from which `node` and then whatever starts at `following` is matched."""
        if isinstance(node, Characters):
            return self._state(node.allowed, following)
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                following = self._compile(part, following)
            return following
        if isinstance(node, Choice):
            return self._state(False, *[self._compile(option, following) for option in node.options])
        if node.times == "?":
            return self._state(False, self._compile(node.part, following), following)
        loop = self._state()
        body = self._compile(node.part, loop)
        self._next[loop] = (body, following)
        return loop if node.times == "*" else body

    def _closure(self, states: Sequence[int]) -> set[int]:
        seen: set[int] = set()
        pending = list(states)
        while pending:
            state = pending.pop()
            if state not in seen:
                seen.add(state)
                if self._reads[state] is False:
                    pending += self._next[state]
        return seen
