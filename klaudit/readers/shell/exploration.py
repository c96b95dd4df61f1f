"""The other ways a script may go: each arm that the plain run leaves out is followed once, with the assumption it takes.

Never exponential: below an assumption only the branches inside the arm it opened are followed in turn, everything after runs as it
falls, and each arm is opened once.  Where the arm left out would have ended the script (`[ -f x ] || exit 1`), the plain run has seen
nothing of what follows, and the branches there are followed as well.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from klaudit.readers.shell.budget import Budget
from klaudit.readers.shell.code import Code
from klaudit.readers.shell.conditions import Refinement
from klaudit.readers.shell.effects import effects
from klaudit.readers.shell.program import Range
from klaudit.readers.shell.state import Key, State, Value
from klaudit.readers.shell.text import EMPTY, Fragment, Place, Text, decode, from_bytes, owned_by

_MAX_WORDS = 160
_BLANKS = re.compile(r"(?:\s|\\\n)+")
_BRACKETS = re.compile(r"\[\[ (.*) \]\]|\[ (.*) \]|\(\( ?(.*?) ?\)\)|test (.*)", re.DOTALL)
_SEVERAL = ("]]", " ] ", " && [", " || [")  # in what seems to be one pair of brackets
_JOINING = ("&&", "||", " -a ", " -o ", ";")  # so that a sign of negation before them is not that of the whole
_NOT = "not ("

_ON = "on"  # past a failure
SOMETHING = "?"  # what an unknown text that is assumed not to be empty reads as


class Region(NamedTuple):
    """The arm that an assumption opened: branches inside are followed too.  At depth 0 everything is inside."""

    depth: int
    code: Code
    start: int
    end: int

    def contains(self, state: State) -> bool:
        depth = len(state.frames)
        if depth != self.depth:
            return depth > self.depth
        frame = state.frame
        return frame.code is self.code and self.start <= frame.position <= self.end


class Way(NamedTuple):
    """`checks` are arms that it takes whenever it comes by, as the others would have ended the script."""

    state: State
    region: Region
    checks: frozenset[tuple[int, int, int]]


class Explorer:
    """What is still to be followed.  `region` is that of the run in progress, None for the plain run."""

    def __init__(self, budget: Budget) -> None:
        self.region: Region | None = None
        self._checks: frozenset[tuple[int, int, int]] = frozenset()
        self.is_nested = False  # inside a substitution, whose command cannot be gone on with
        self._budget = budget
        self._ways: deque[Way] = deque()
        self._settled: set[tuple[int, int, int, str]] = set()  # program, position, arm, what for: asked before
        self._kept: list[object] = []  # the programs whose identities these are

    def next_way(self) -> Way | None:
        if not self._ways:
            return None
        way = self._ways.popleft()
        self._checks = way.checks
        return way

    def has_passed(self, state: State, arm: Range) -> bool:
        """Whether this run already rests on a check having taken this arm: met again, in a loop or a function."""
        return bool(self._checks) and _key(state, arm) in self._checks

    def is_open(self, state: State) -> bool:
        """Whether branches met now are to be followed."""
        return not self.is_nested and self._budget.runs > 0 and (self.region is None or self.region.contains(state))

    def wants_on(self, state: State, rest: Range) -> bool:
        """Whether to follow what comes after a failure that ends the script: it is asked for the first time."""
        key = (*_key(state, rest), _ON)
        if not self.is_open(state) or key in self._settled:
            return False
        self._settled.add(key)
        self._kept.append(state.frame.instructions)
        return True

    def wants(self, state: State, taken: Range, other: Range, what_for: str = "") -> bool:
        """Whether to follow the `other` way as well: it is asked for the first time and can start another command.

        `what_for` tells ways apart that begin at the same place.
        """
        if not self.is_open(state):
            return False
        frame = state.frame
        key = (*_key(state, other), what_for)
        if key in self._settled:
            return False
        self._settled.add(key)
        self._kept.append(frame.instructions)
        return (
            effects(frame.instructions, *other, frame.code, state.functions).matter_when_run
            or effects(frame.instructions, *taken, frame.code, state.functions).matter_when_skipped
        )

    def open(self, state: State, arm: Range, assumption: str, instead_of: Range | None = None) -> State:
        """A copy of `state` at the start of an arm, to be followed later under an assumption, instead of the arm that is taken."""
        self._budget.runs -= 1
        way = state.copy()
        frame = way.frame
        frame.position = arm[0]
        way.assumes = (*state.assumes, assumption)
        is_check = instead_of == arm or (instead_of is not None and leaves(state, instead_of))
        checks = self._checks | {_key(state, arm)} if is_check else self._checks
        self._ways.append(Way(way, Region(0 if is_check else len(way.frames), frame.code, *arm), checks))
        return way


def _key(state: State, arm: Range) -> tuple[int, int, int]:
    """An arm of the branch that a run is at: program, position, start of the arm."""
    return id(state.frame.instructions), state.frame.position, arm[0]


def leaves(state: State, arm: Range) -> bool:
    """Whether an arm may end the script, function or loop."""
    return effects(state.frame.instructions, *arm, state.frame.code, state.functions).leaves


def refine(state: State, refinement: Refinement, holds: bool, place: Place) -> None:
    """Make the state agree with a condition that is assumed to hold or not to."""
    name, value = refinement.name, refinement.value
    if value is not None:
        if refinement.when == holds:
            give(state, name, owned_by(value, name, None))
    elif refinement.when == holds:
        give(state, name, something((name,), place))
    else:
        give(state, name, EMPTY)


def something(hangs: tuple[str, ...], place: Place) -> Text:
    """A text of which nothing is known but that it is not empty."""
    return (Fragment(SOMETHING, place.source, place.start, place.start, hangs_on=hangs),)


def give(state: State, name: str, value: Text, key: Key | None = None) -> None:
    """Set a variable, an element of it, or a positional parameter and those before it."""
    if not name.isdigit():
        state.assign(name, value, key=key)
        return
    number, frame = int(name), state.frame
    given = list(frame.positional)
    given += [Value(EMPTY)] * (number - len(given))
    if number:
        given[number - 1] = Value(value)
    frame.positional = tuple(given)


def in_words(code: Code, start: int, end: int) -> str:
    """A condition as the script words it, without its brackets."""
    text = _without_brackets(_BLANKS.sub(" ", code.text[start:end]).strip())
    if len(text) > _MAX_WORDS:
        text = text[: _MAX_WORDS - 2] + from_bytes(" …".encode())
    return decode(text)


def _without_brackets(text: str) -> str:
    if brackets := _BRACKETS.fullmatch(text):
        inner = next(group for group in brackets.groups() if group is not None).strip()
        is_number = text.startswith("((")  # where the sign of negation binds more tightly than elsewhere
        if not any(symbol in inner for symbol in _SEVERAL) and not (is_number and inner.startswith("!")):
            return inner
    return text


def negated(words: str) -> str:
    """That a condition in words does not hold."""
    if words.startswith(_NOT) and words.endswith(")"):
        return words[len(_NOT) : -1]
    if words.startswith("! ") and not any(symbol in words for symbol in _JOINING):
        return _without_brackets(words[2:].lstrip())
    return f"{_NOT}{words})"
