"""The value half of Hydra's override grammar: quoted and bare strings, numbers, lists, dicts, sweeps and functions."""

from __future__ import annotations

import re
from typing import NoReturn, TypeAlias

from klaudit.frameworks.compose.override_functions import FUNCTIONS, Sweep, SweepOr
from klaudit.frameworks.compose.primitives import ESCAPE, GrammarError, primitive, without_trailing_space
from klaudit.model import Value

MAX_DEPTH = 50
_SPACE = re.compile(r"[ \t]*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*")|('(?:[^'\\]|\\.)*')""", re.DOTALL)
_WORD = re.compile(rf"(?:[A-Za-z0-9_/+.%*@?|:\- \t]|\$(?!\{{)|\$\{{[^}}]+\}}|{ESCAPE}|\\)+")
_KEY = re.compile(rf"(?:[A-Za-z0-9_/+.%*@?|\- \t]|\$(?!\{{)|{ESCAPE}|\\)+")
_SIMPLE = re.compile(r"[A-Za-z0-9_/+.%*@?|$-]+")
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\([ \t]*")
_ARGUMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*=[ \t]*")

Parsed: TypeAlias = "Value | Sweep"


def parse_value(text: str, start: int = 0) -> Parsed:
    """What stands after the `=` of an override; nothing there is an empty string.

    Interpolations are kept as text.  Raises GrammarError for what Hydra cannot parse, which ends the launch.
    """
    if _SIMPLE.fullmatch(text, start):
        return primitive(text[start:])
    return _Parser(text, start).value()


class _Parser:
    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start

    def value(self) -> Parsed:
        self._skip()
        if self._at == len(self._text):
            return ""
        first = self._element(0)
        if self._at == len(self._text):
            return first
        values: list[SweepOr] = [first]
        while self._take(","):
            values.append(self._element(0))
        if self._at < len(self._text):
            self._fail("unexpected text")
        return Sweep(tuple(_no_sweep(value) for value in values), simple=True)

    def _element(self, depth: int) -> SweepOr:
        if depth > MAX_DEPTH:
            self._fail("nested too deeply")
        if self._text.startswith("[", self._at):
            return self._list(depth)
        if self._text.startswith("{", self._at):
            return self._dict(depth)
        if (quoted := _QUOTED.match(self._text, self._at)) is not None:
            self._at = quoted.end()
            if _SPACE.fullmatch(self._text, self._at) and self._at < len(self._text):
                self._fail("space after a quoted value")
            return _unquoted(quoted[0])
        if (call := _CALL.match(self._text, self._at)) is not None:
            return self._call(call, depth)
        return self._primitive(_WORD)

    def _primitive(self, pattern: re.Pattern[str]) -> Value:
        match = pattern.match(self._text, self._at)
        if match is None:
            self._fail("expected a value")
        word = without_trailing_space(match[0].lstrip(" \t"))
        if not word:
            self._fail("expected a value")
        self._at = match.end()
        return primitive(word)

    def _list(self, depth: int) -> list[Value]:
        self._at += 1
        self._skip()
        values: list[Value] = []
        if self._take("]"):
            return values
        while True:
            values.append(_no_sweep(self._element(depth + 1)))
            if self._take("]"):
                return values
            if not self._take(","):
                self._fail("expected , or ]")

    def _dict(self, depth: int) -> dict[str, Value]:
        self._at += 1
        self._skip()
        values: dict[str, Value] = {}
        if self._take("}"):
            return values
        while True:
            key = self._primitive(_KEY)
            if not self._take(":"):
                self._fail("expected : after a key")
            values[str(key)] = _no_sweep(self._element(depth + 1))
            if self._take("}"):
                return values
            if not self._take(","):
                self._fail("expected , or }")

    def _call(self, call: re.Match[str], depth: int) -> SweepOr:
        self._at = call.end()
        positional: list[SweepOr] = []
        named: dict[str, SweepOr] = {}
        if not self._take(")"):
            while True:
                if (name := _ARGUMENT.match(self._text, self._at)) is not None:
                    self._at = name.end()
                    named[name[1]] = self._element(depth + 1)
                elif named:
                    self._fail("a positional argument after a named one")
                else:
                    positional.append(self._element(depth + 1))
                if self._take(")"):
                    break
                if not self._take(","):
                    self._fail("expected , or )")
        function = FUNCTIONS.get(call[1])
        if function is None:
            raise GrammarError(f"unknown function {call[1]}()", call.start())
        try:
            return function(*positional, **named)
        except (TypeError, ValueError, OverflowError) as error:
            raise GrammarError(f"{call[1]}(): {error}", call.start()) from None

    def _take(self, character: str) -> bool:
        """Take `character` and the space around it."""
        at = self._at
        self._skip()
        if self._text.startswith(character, self._at):
            self._at += 1
            if character in ",:":
                self._skip()
            return True
        self._at = at
        return False

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _fail(self, problem: str) -> NoReturn:
        raise GrammarError(problem, self._at)


def _no_sweep(value: SweepOr) -> Value:
    if isinstance(value, Sweep):
        raise GrammarError("a sweep inside another value", 0)
    return value


def _unquoted(text: str) -> str:
    """Quotes taken off; backslashes before a quote, and only those, are escapes."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return re.sub(rf"(\\+)({text[0]}|\Z)", lambda match: match[1][: len(match[1]) // 2] + match[2], inner)
