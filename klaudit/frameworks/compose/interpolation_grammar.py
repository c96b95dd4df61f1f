"""The text of an interpolation -> a small tree: `${a.b}`, `${.x}`, `${oc.env:X,1}`, `tcp://${host}:${port}`.

This is OmegaConf's grammar; what the tree evaluates to is in `interpolation`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn, TypeAlias

from msgspec import Struct

from klaudit.frameworks.compose.primitives import ESCAPE, GrammarError, primitive, unescape, without_trailing_space
from klaudit.model import Scalar

MAX_DEPTH = 40
MAX_LENGTH = 10_000


class Reference(Struct, frozen=True):
    """`${...}` to another key: the pieces of its dotted name, leading dots (relative) included."""

    pieces: tuple[str | Interpolation, ...]


class Call(Struct, frozen=True):
    """`${name:arguments}`: a resolver; `text` is its source."""

    name: tuple[str | Interpolation, ...]
    arguments: tuple[Element, ...]
    text: str


class Joined(Struct, frozen=True):
    """Text with interpolations in it.  One interpolation alone keeps the type of its value, unless `is_quoted`."""

    pieces: tuple[str | Interpolation, ...]
    is_quoted: bool = False


class Constant(Struct, frozen=True):
    value: Scalar


class Sequence(Struct, frozen=True):
    items: tuple[Element, ...]


class Mapping(Struct, frozen=True):
    items: tuple[tuple[str, Element], ...]


Interpolation: TypeAlias = Reference | Call
Element: TypeAlias = Constant | Joined | Sequence | Mapping

_SPACE = re.compile(r"[ \t]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_KEY = re.compile(r"[^\\{}()\[\]:. \t'\"]+")
_WORD = re.compile(rf"(?:[A-Za-z0-9_/+.%*@?|:\- \t]|\$(?!\{{)|{ESCAPE}|\\)+")
_DICT_KEY = re.compile(rf"(?:[A-Za-z0-9_/+.%*@?|\- \t]|\$(?!\{{)|{ESCAPE}|\\)+")
_TEXT = re.compile(r"[^$\\]+|\\+|\$")


@lru_cache(maxsize=4096)
def parse_text(text: str) -> Joined:
    """A config value with `${` in it.  Raises GrammarError where OmegaConf refuses to load it."""
    if len(text) > MAX_LENGTH:
        raise GrammarError("an interpolation too long to read", 0)
    parser = _Parser(text)
    joined = parser.text("")
    if parser.at < len(text):
        raise GrammarError("unexpected text", parser.at)
    return joined


@lru_cache(maxsize=256)
def parse_element(text: str) -> Element:
    """What `oc.decode` reads: one value.  Raises GrammarError."""
    if len(text) > MAX_LENGTH:
        raise GrammarError("a value too long to read", 0)
    parser = _Parser(text)
    element = parser.element(0)
    if parser.at < len(text):
        raise GrammarError("unexpected text", parser.at)
    return element


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._depth = 0

    def text(self, quote: str) -> Joined:
        """Text up to its end or the closing `quote`, which is left."""
        pieces: list[str | Interpolation] = []
        while self.at < len(self._text):
            if quote and self._text.startswith(quote, self.at):
                break
            if self._text.startswith("${", self.at):
                pieces.append(self._interpolation())
                continue
            match = _TEXT.match(self._text, self.at)
            run = match[0] if match else self._text[self.at]
            if quote and quote in run:
                run = run[: run.index(quote)]
            self.at += len(run)
            pieces.append(self._backslashes(run, quote) if run[0] == "\\" else run)
        return Joined(_fused(pieces), bool(quote))

    def _backslashes(self, run: str, quote: str) -> str:
        """Backslashes matter only before an interpolation or a quote, where an odd one takes its meaning away."""
        is_before_interpolation = self._text.startswith("${", self.at)
        is_before_quote = bool(quote) and self._text.startswith(quote, self.at)
        if not is_before_interpolation and not is_before_quote:
            return run
        kept = "\\" * (len(run) // 2)
        if len(run) % 2 == 0:
            return kept
        escaped = "${" if is_before_interpolation else quote
        self.at += len(escaped)
        return kept + escaped

    def _interpolation(self) -> Interpolation:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail("nested too deeply")
        start = self.at
        self.at += 2
        self._skip()
        pieces, is_name = self._path()
        self._skip()
        if is_name and self._text.startswith(":", self.at):
            self.at += 1
            self._skip()
            arguments = self._sequence("}")
            found: Interpolation = Call(_fused(pieces), arguments, self._text[start : self.at])
        elif self._text.startswith("}", self.at):
            self.at += 1
            found = Reference(_fused(pieces))
        else:
            self._fail("expected }")
        self._depth -= 1
        return found

    def _path(self) -> tuple[list[str | Interpolation], bool]:
        """The pieces of a key, and whether they can name a resolver."""
        pieces: list[str | Interpolation] = []
        while self._text.startswith(".", self.at):
            pieces.append(".")
            self.at += 1
        is_name = not pieces
        while True:
            if is_bracketed := self._text.startswith("[", self.at):
                pieces.append("[")
                self.at += 1
                is_name = False
            if self._text.startswith("${", self.at):
                pieces.append(self._interpolation())
            else:
                match = _KEY.match(self._text, self.at)
                if match is None:
                    self._fail("expected a key")
                is_name = is_name and _NAME.fullmatch(match[0]) is not None
                pieces.append(match[0])
                self.at = match.end()
            if is_bracketed:
                if not self._text.startswith("]", self.at):
                    self._fail("expected ]")
                pieces.append("]")
                self.at += 1
            if self._text.startswith(".", self.at):
                pieces.append(".")
                self.at += 1
                if self._text.startswith("[", self.at):
                    self._fail("expected a key")
            elif not self._text.startswith("[", self.at):
                return pieces, is_name

    def _sequence(self, closing: str) -> tuple[Element, ...]:
        """Elements up to `closing`, which is taken; one left out is an empty text."""
        elements: list[Element] = []
        if self._take(closing):
            return ()
        while True:
            at = self.at
            self._skip()
            if self._text.startswith((",", closing), self.at):
                elements.append(Constant(""))
            else:
                self.at = at
                elements.append(self.element(self._depth))
            if self._take(closing):
                return tuple(elements)
            if not self._take(","):
                self._fail(f"expected , or {closing}")

    def element(self, depth: int) -> Element:
        if depth > MAX_DEPTH:
            self._fail("nested too deeply")
        character = self._text[self.at : self.at + 1]
        if character == "[":
            self.at += 1
            self._skip()
            self._depth += 1
            items = self._sequence("]")
            self._depth -= 1
            return Sequence(items)
        if character == "{":
            return self._mapping(depth)
        if character and character in "'\"":
            self.at += 1
            quoted = self.text(character)
            if not self._text.startswith(character, self.at):
                self._fail("a quote is not closed")
            self.at += 1
            return quoted
        return self._primitive()

    def _primitive(self) -> Element:
        words: list[str] = []
        pieces: list[str | Interpolation] = []
        while True:
            if self._text.startswith("${", self.at):
                pieces.append(self._interpolation())
                continue
            match = _WORD.match(self._text, self.at)
            if match is None:
                break
            word = match[0]
            if not self._text.startswith("${", match.end()):
                word = without_trailing_space(word)
            if not word:
                break
            words.append(word)
            pieces.append(unescape(word))
            self.at += len(word)
            if len(word) < len(match[0]):
                break
        if not pieces:
            self._fail("expected a value")
        if len(pieces) == 1 and words:
            return Constant(primitive(words[0]))
        return Joined(_fused(pieces))

    def _mapping(self, depth: int) -> Mapping:
        self.at += 1
        self._skip()
        items: list[tuple[str, Element]] = []
        if self._take("}"):
            return Mapping(())
        while True:
            match = _DICT_KEY.match(self._text, self.at)
            key = without_trailing_space(match[0]) if match else ""
            if not key:
                self._fail("expected a key")
            self.at += len(key)
            if not self._take(":"):
                self._fail("expected :")
            items.append((str(primitive(key)), self.element(depth + 1)))
            if self._take("}"):
                return Mapping(tuple(items))
            if not self._take(","):
                self._fail("expected , or }")

    def _take(self, character: str) -> bool:
        """Take `character` with the space before it, and after it where more must follow."""
        at = self.at
        self._skip()
        if not self._text.startswith(character, self.at):
            self.at = at
            return False
        self.at += 1
        if character in ",:":
            self._skip()
        return True

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self.at)
        self.at = match.end() if match else self.at

    def _fail(self, problem: str) -> NoReturn:
        raise GrammarError(problem, self.at)


def _fused(pieces: list[str | Interpolation]) -> tuple[str | Interpolation, ...]:
    """Neighbouring texts as one."""
    fused: list[str | Interpolation] = []
    for piece in pieces:
        if isinstance(piece, str) and fused and isinstance(fused[-1], str):
            fused[-1] += piece
        else:
            fused.append(piece)
    return tuple(fused)
