"""Where strings, comments and brackets stand in Python source, by scanning bytes: for what has no tree, or a newer grammar than ours."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from klaudit.patterns import rare

MAX_NESTING = 20  # f-strings within f-strings; people write two

_STRING = rb"(?:(?<![\w\x80-\xff])(?P<prefix>(?i:[rbuft]|[bft]r|r[bft])))?(?P<quote>\"\"\"|'''|\"|')"
_STRING_START = rare(_STRING)
_LEXEME = rare(
    rb"(?P<comment>#[^\r\n]*)|(?P<bracket>[()\[\]{}])|(?P<newline>\r\n|\r|\n)|(?P<joined>\\(?:\r\n|\r|\n))|" + _STRING
)
_IN_FIELD = rare(rb"(?P<comment>#[^\r\n]*)|(?P<bracket>[()\[\]{}])|(?P<colon>:)|" + _STRING)
_QUOTES = (b'"', b"'", b'"""', b"'''")


def _stops(inside: bytes) -> dict[bytes, re.Pattern[bytes]]:
    """By quote: what ends a string or needs a look inside it."""
    return {quote: re.compile(inside + b"|" + quote + (b"" if len(quote) == 3 else rb"|[\r\n]")) for quote in _QUOTES}


_PLAIN_STOP = _stops(rb"\\(?:\r\n|[\s\S])")
_FORMAT_STOP = _stops(rb"\\N\{[^}]*\}|\\(?:\r\n|[^{}])|\{\{|\}\}|[{}]")
_RAW_FORMAT_STOP = _stops(rb"\\[^{}]|\{\{|\}\}|[{}]")
_BRACE = re.compile(rb"[{}]")
_CLOSING = {b"(": b")", b"[": b"]", b"{": b"}"}


class LexError(ValueError):
    """An unterminated string or field."""


class StringToken(Struct):
    """One string literal; `fields` are the replacement fields of an f-string (braces included), outermost only."""

    start: int
    end: int
    prefix: str
    body_start: int
    body_end: int
    fields: tuple[tuple[int, int], ...] = ()

    @property
    def formatted(self) -> bool:
        return "f" in self.prefix or "t" in self.prefix


class Mark(Struct):
    """A comment, bracket, line end or escaped line end between strings."""

    kind: str
    start: int
    end: int


def lexemes(data: bytes, start: int = 0, end: int | None = None) -> Iterator[StringToken | Mark]:
    """Strings, comments, brackets and line ends in order.  Raises LexError at a string that does not end."""
    stop = len(data) if end is None else end
    at = start
    while (match := _LEXEME.search(data, at, stop)) is not None:
        if match["quote"] is not None:
            token = _string(data, match, stop, 0)
            yield token
            at = token.end
        else:
            yield Mark(match.lastgroup or "", match.start(), match.end())
            at = match.end()


def strings(data: bytes, start: int, end: int) -> Iterator[StringToken]:
    """The string literals in a range.  Raises LexError at one that does not end."""
    return (token for token in lexemes(data, start, end) if isinstance(token, StringToken))


def string_at(data: bytes, start: int) -> StringToken | None:
    """The string literal that begins at `start`, None where none does.  Raises LexError where it does not end."""
    match = _STRING_START.match(data, start)
    return None if match is None else _string(data, match, len(data), 0)


def _string(data: bytes, match: re.Match[bytes], stop: int, depth: int) -> StringToken:
    if depth > MAX_NESTING:
        raise LexError("f-strings nested too deep")
    prefix, quote = (match["prefix"] or b"").decode("ascii").lower(), match["quote"]
    token = StringToken(match.start(), 0, prefix, match.end(), 0)
    fields: list[tuple[int, int]] = []
    pattern = (_RAW_FORMAT_STOP if "r" in prefix else _FORMAT_STOP)[quote] if token.formatted else _PLAIN_STOP[quote]
    at = token.body_start
    while (found := pattern.search(data, at, stop)) is not None:
        what = found.group()
        if what == quote:
            token.body_end, token.end, token.fields = found.start(), found.end(), tuple(fields)
            return token
        if what in (b"\r", b"\n"):
            break
        at = found.end()
        if what == b"{":
            at = _field_end(data, found.end(), stop, depth)
            fields.append((found.start(), at))
    raise LexError("unterminated string")


def _field_end(data: bytes, at: int, stop: int, depth: int) -> int:
    """Just after the brace that closes the replacement field whose inside begins at `at`."""
    opened: list[bytes] = []
    while (match := _IN_FIELD.search(data, at, stop)) is not None:
        at = match.end()
        if match["quote"] is not None:
            at = _string(data, match, stop, depth + 1).end
        elif match["bracket"] is not None:
            bracket = match["bracket"]
            if bracket in _CLOSING:
                opened.append(_CLOSING[bracket])
            elif not opened and bracket == b"}":
                return at
            elif not opened or opened.pop() != bracket:
                raise LexError("unmatched bracket in an f-string")
        elif match["colon"] is not None and not opened:
            return _format_spec_end(data, at, stop, depth)
    raise LexError("unterminated field of an f-string")


def _format_spec_end(data: bytes, at: int, stop: int, depth: int) -> int:
    if depth > MAX_NESTING:
        raise LexError("f-strings nested too deep")
    while (match := _BRACE.search(data, at, stop)) is not None:
        at = match.end()
        if match.group() == b"}":
            return at
        at = _field_end(data, at, stop, depth + 1)
    raise LexError("unterminated field of an f-string")
