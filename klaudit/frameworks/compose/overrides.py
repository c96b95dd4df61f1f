"""Hydra's command-line grammar: `key=value`, `+key=value`, `++key=value`, `~key`, `group@package=option`."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.frameworks.compose.items import NOWHERE
from klaudit.frameworks.compose.override_functions import Sweep
from klaudit.frameworks.compose.override_values import parse_value
from klaudit.frameworks.compose.primitives import GrammarError
from klaudit.model import Problem, Setting, Span, Unknown, Value
from klaudit.patterns import rare
from klaudit.readers.document import Word
from klaudit.readers.words import partition, written_in

Prefix: TypeAlias = Literal["", "+", "++", "~"]

_NAME = r"[A-Za-z_$][A-Za-z0-9_$-]*"
_PART = rf"(?:{_NAME}|0|[1-9](?:_?[0-9])*)"
_PATH = rf"{_PART}(?:\.{_PART})+"
_GROUP = r"[A-Za-z_][A-Za-z0-9_-]*(?:/[A-Za-z_][A-Za-z0-9_-]*)+"
_HEAD = rare(rf"(\+\+?|~)?({_GROUP}|{_PATH}|{_NAME}|)(?:@({_PATH}|{_NAME}|))?(=[ \t]*|\Z)")


class Parsed(Struct, frozen=True):
    """One override as the grammar reads it.

    `value_at` is the offset, in characters, of the value in the text (None without a `=`).  `alternatives` lists the values of a
    sweep, whose `value` is Unknown; it is empty where they cannot be listed and None where there is no sweep.  `problem` says why
    the text is no override; Hydra then refuses the launch, unless `hangs_on` names what the key itself hangs on.
    """

    text: str
    prefix: Prefix = ""
    key: str = ""
    package: str | None = None
    value: Value = None
    value_at: int | None = None
    alternatives: tuple[Value, ...] | None = None
    is_simple_sweep: bool = False
    problem: str | None = None
    hangs_on: tuple[str, ...] = ()


class Override(Struct, frozen=True):
    """An override and the word of the command that spells it (None for one given as text)."""

    parsed: Parsed
    word: Word | None = None

    @property
    def prefix(self) -> Prefix:
        return self.parsed.prefix

    @property
    def key(self) -> str:
        return self.parsed.key

    @property
    def package(self) -> str | None:
        return self.parsed.package

    @property
    def value(self) -> Value:
        return self.parsed.value

    @property
    def may_be_group(self) -> bool:
        """Whether the key can name a config group: groups have no dots."""
        return "." not in self.parsed.key

    @property
    def is_group_only(self) -> bool:
        """Whether the key can name nothing but a config group."""
        return "/" in self.parsed.key or self.parsed.package is not None

    def complaint(self, message: str) -> Problem:
        """A problem at the place of the command."""
        site = self.word.site if self.word is not None else None
        return Problem(site.path if site else "", site.line if site else None, message)

    def setting(self, name: str, value: Value) -> Setting:
        raw = "" if self.parsed.value_at is None else self.parsed.text[self.parsed.value_at :]
        if self.word is None:
            return Setting(name, value, NOWHERE, NOWHERE, "override", None, raw)
        span = self.word.span
        if span.end - span.start == len(self.parsed.text) and span.line == span.end_line and len(self.word.pieces) == 1:
            at = self.parsed.value_at or 0  # spelled as it stands
            value_span = Span(span.path, span.start + at, span.end, span.line, span.column + at, *_end(span))
            return Setting(name, value, span, value_span, "override", None, raw)
        parts = partition(self.word, "=")
        if parts is None:
            return Setting(name, value, span, span, "override", None, raw)
        origin, source = written_in(parts[1])
        return Setting(name, value, self.word.span, parts[1].span, origin, source, raw)


def parse_override(argument: Word | str) -> Override:
    """An argument of a Hydra program; it never fails, but says in `parsed.problem` what is wrong with it.

    A value of which any part is unknown is Unknown.
    """
    if isinstance(argument, str):
        return Override(_parse(argument))
    text = argument.text
    if text is not None:
        return Override(_parse(text), argument)
    return Override(_parse_partly(argument), argument)


def _parse_partly(word: Word) -> Parsed:
    parts = partition(word, "=")
    key = word.pieces[0].text if parts is None else parts[0].text
    if parts is None or key is None:
        return Parsed(word.shown, problem="which setting this changes cannot be known", hangs_on=word.hangs_on)
    parsed = _parse(key + "=")
    if parsed.problem is not None:
        return parsed
    value = Unknown(parts[1].hangs_on, parts[1].shown)
    return Parsed(word.shown, parsed.prefix, parsed.key, parsed.package, value, len(key) + 1)


def _end(span: Span) -> tuple[int, int, int | None]:
    return span.end_line, span.end_column, span.cell


@lru_cache(maxsize=8192)
def _parse(text: str) -> Parsed:
    head = _HEAD.match(text)
    if head is None or (not head[4] and head[1] != "~"):
        return Parsed(text, problem=_what_is_wrong(text))
    prefix: Prefix = head[1] or ""  # type: ignore[assignment]  # the pattern lists them
    if not head[4]:
        return Parsed(text, prefix, head[2], head[3])
    at = head.end()
    try:
        value = parse_value(text, at)
    except GrammarError as error:
        problem = f"{error} at character {error.at + 1} of {text}"
        return Parsed(text, prefix, head[2], head[3], Unknown((text[at:],), text[at:]), at, problem=problem)
    if isinstance(value, Sweep):
        unknown = Unknown(("sweep",), text[at:])
        return Parsed(text, prefix, head[2], head[3], unknown, at, value.alternatives or (), value.simple)
    return Parsed(text, prefix, head[2], head[3], value, at)


def _what_is_wrong(text: str) -> str:
    if "=" not in text and not text.startswith("~"):
        return f"{text} is no override: it has no ="
    return f"{text.partition('=')[0]} is not a key that Hydra can parse"
