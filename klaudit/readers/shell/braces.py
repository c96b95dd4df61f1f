"""Brace expansion: `{a,b}` and `{1..3}`, before all other expansions."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TypeAlias

from klaudit.patterns import rare
from klaudit.readers.shell.words import Escaped, Parameter, Part, Plain, Word

_MAX_WORDS = 2_000
_MAX_TOKENS = 1_000  # of one word
_MAX_DEPTH = 20
_NAME_CHARACTERS = re.compile(r"\w+", re.ASCII)
_RANGE = rare(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?")

Parts: TypeAlias = "tuple[Part, ...]"


def expand_braces(word: Word, text: str) -> tuple[Word, ...]:
    """The words that `word` stands for; itself alone if it has no braces to expand, or far too many."""
    if not any(
        isinstance(part, Plain) and not part.quoted and "{" in text[part.start : part.end] for part in word.parts
    ):
        return (word,)
    tokens = _tokens(word.parts, text)
    if len(tokens) > _MAX_TOKENS:
        return (word,)
    expanded = _Braces(tokens, text).expand()
    if expanded is None or len(expanded) == 1:
        return (word,)
    return tuple(Word(word.start, word.end, _with_longer_names(parts, text)) for parts in expanded)


def _with_longer_names(parts: Parts, text: str) -> Parts:
    """Braces are expanded as text: `$X{a,b}` is `$Xa $Xb`, two other variables."""
    kept: list[Part] = []
    for part in parts:
        before = kept[-1] if kept else None
        more = _NAME_CHARACTERS.match(_unquoted(part, text))
        if more and isinstance(before, Parameter) and _is_bare(before):
            kept[-1] = before._replace(name=before.name + more.group())
            if isinstance(part, Plain) and more.end() < part.end - part.start:
                kept.append(part._replace(start=part.start + more.end()))
        else:
            kept.append(part)
    return tuple(kept)


def _unquoted(part: Part, text: str) -> str:
    if isinstance(part, Plain) and not part.quoted:
        return text[part.start : part.end]
    return part.characters if isinstance(part, Escaped) and not part.quoted else ""


def _is_bare(part: Parameter) -> bool:
    """Whether it is written `$name`, without braces or quotes."""
    is_name = part.name[0].isalpha() or part.name[0] == "_"
    return is_name and not part.quoted and part.end - part.start == len(part.name) + 1


def _tokens(parts: Parts, text: str) -> list[Part]:
    """The parts with every brace and comma on its own."""
    tokens: list[Part] = []
    for part in parts:
        if not isinstance(part, Plain) or part.quoted:
            tokens.append(part)
            continue
        for run in re.finditer(r"[{},]|[^{},]+", text[part.start : part.end]):
            tokens.append(Plain(part.start + run.start(), part.start + run.end(), False))
    return tokens


class _Braces:
    def __init__(self, tokens: list[Part], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._count = 0
        self._closes: dict[int, int] = {}
        self._commas: dict[int, list[int]] = {}
        opened: list[int] = []
        for index in range(len(tokens)):
            if self._is(index, "{"):
                opened.append(index)
                self._commas[index] = []
            elif opened and self._is(index, ","):
                self._commas[opened[-1]].append(index)
            elif opened and self._is(index, "}"):
                self._closes[opened.pop()] = index

    def expand(self) -> list[Parts] | None:
        try:
            return self._sequence(0, len(self._tokens), 0)
        except OverflowError:
            return None

    def _is(self, index: int, character: str) -> bool:
        token = self._tokens[index]
        return isinstance(token, Plain) and not token.quoted and self._text[token.start : token.end] == character

    def _sequence(self, start: int, end: int, depth: int) -> list[Parts]:
        results: list[Parts] = [()]
        index = start
        while index < end:
            alternatives, after = self._group(index, end, depth) if self._is(index, "{") else (None, index)
            if alternatives is None:
                alternatives, after = [(self._tokens[index],)], index + 1
            self._count += len(results) * len(alternatives)
            if self._count > _MAX_WORDS * 50 or len(results) * len(alternatives) > _MAX_WORDS:
                raise OverflowError
            results = [(*before, *alternative) for before in results for alternative in alternatives]
            index = after
        return results

    def _group(self, start: int, end: int, depth: int) -> tuple[list[Parts] | None, int]:
        """The alternatives of the braces that open at `start`, None if these stand for themselves."""
        index = self._closes.get(start)
        if index is None or index >= end or depth >= _MAX_DEPTH:
            return None, start
        commas = self._commas[start]
        if commas:
            edges = [start, *commas, index]
            return [
                alternative
                for first, last in pairwise(edges)
                for alternative in self._sequence(first + 1, last, depth + 1)
            ], index + 1
        inner = self._tokens[start + 1 : index]
        if len(inner) == 1 and isinstance(inner[0], Plain) and not inner[0].quoted:
            found = _RANGE.fullmatch(self._text, inner[0].start, inner[0].end)
            if found:
                return [
                    (Escaped(inner[0].start, inner[0].end, each, quoted=False),) for each in _range(found)
                ], index + 1
        return None, start


def _range(found: re.Match[str]) -> list[str]:
    low, high, first, last, step_text = found.groups()
    if first:
        start, stop = ord(first), ord(last)
    else:
        start, stop = int(low), int(high)
    step = abs(int(step_text)) if step_text and int(step_text) else 1
    if abs(stop - start) // step > _MAX_WORDS:
        raise OverflowError
    values = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    if first:
        return [chr(value) for value in values]
    digits = [text.lstrip("-") for text in (low, high)]
    width = max(map(len, (low, high))) if any(len(text) > 1 and text[0] == "0" for text in digits) else 0
    return [f"{value:0{width}d}" if width else str(value) for value in values]
