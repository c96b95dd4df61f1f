"""String literals as fragments: which bytes spell which characters, through prefixes, escapes, adjacent literals and f-string fields."""

from __future__ import annotations

import re
import unicodedata

from klaudit.patterns import rare
from klaudit.readers.python.lexer import LexError, StringToken, strings
from klaudit.readers.python.results import Fragment

_SPECIAL = re.compile(
    rb"\\N\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[0-7]{1,3}|\\\r\n|\\[\s\S]|\r\n?"
)
_LINE_END = re.compile(rb"\r\n?")
_SPECIAL_IN_FORMAT = rare(_SPECIAL.pattern.replace(rb"\\[\s\S]", rb"\\[^{}]") + rb"|\{\{|\}\}")
_LINE_END_IN_FORMAT = re.compile(rb"\r\n?|\{\{|\}\}")
_SIMPLE = dict(zip([b"\\", b"'", b'"', b"a", b"b", b"f", b"n", b"r", b"t", b"v"], "\\'\"\a\b\f\n\r\t\v", strict=True))
_SIMPLE |= {b"\n": "", b"\r": ""}  # an escaped line end joins the lines
_PLAIN_LITERAL = re.compile(rb"\"[^\"\\\r\n]*\"|'[^'\\\r\n]*'")


def plain(data: bytes, start: int, end: int, value: str) -> tuple[Fragment, ...]:
    """The fragments of a string constant that stands at `start`..`end` and is known to be `value`."""
    match = _PLAIN_LITERAL.match(data, start)
    if match is not None and match.end() == end:  # one literal without prefix or escapes: nearly all of them
        return (Fragment(value, start + 1, end - 1, verbatim=True),)
    fragments = spell(data, start, end)
    if fragments is not None and "".join(fragment.text or "" for fragment in fragments) == value:
        return fragments
    return (Fragment(value, start, end),)


def spell(data: bytes, start: int, end: int) -> tuple[Fragment, ...] | None:
    """The fragments of adjacent literals; a replacement field of an f-string is one fragment without text.

    None for bytes literals and for what does not scan.
    """
    fragments: list[Fragment] = []
    try:
        for token in strings(data, start, end):
            if "b" in token.prefix:
                return None
            at = token.body_start
            for field_start, field_end in token.fields:
                _spell_run(data, token, at, field_start, fragments)
                fragments.append(
                    Fragment(None, field_start, field_end, hangs_on=(_expression(data, field_start, field_end),))
                )
                at = field_end
            _spell_run(data, token, at, token.body_end, fragments)
    except (LexError, UnicodeDecodeError):
        return None
    return tuple(fragments)


def _spell_run(data: bytes, token: StringToken, start: int, end: int, fragments: list[Fragment]) -> None:
    raw = "r" in token.prefix
    if token.formatted:
        pattern = _LINE_END_IN_FORMAT if raw else _SPECIAL_IN_FORMAT
    else:
        pattern = _LINE_END if raw else _SPECIAL
    at = start
    for match in pattern.finditer(data, start, end):
        if match.start() > at:
            fragments.append(Fragment(data[at : match.start()].decode("utf-8"), at, match.start(), verbatim=True))
        fragments.append(Fragment(_unescape(match.group()), match.start(), match.end()))
        at = match.end()
    if end > at:
        fragments.append(Fragment(data[at:end].decode("utf-8"), at, end, verbatim=True))


def _unescape(spelled: bytes) -> str:
    if spelled[:1] == b"\r":
        return "\n"
    if spelled[:1] in (b"{", b"}"):
        return spelled[:1].decode("ascii")
    letter = spelled[1:2]
    if letter in (b"x", b"u", b"U") and len(spelled) > 2:
        code = int(spelled[2:], 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    if letter.isdigit() and letter not in (b"8", b"9"):
        return chr(int(spelled[1:], 8))
    if letter == b"N" and len(spelled) > 2:
        try:
            return unicodedata.lookup(spelled[3:-1].decode("ascii"))
        except (KeyError, UnicodeDecodeError):
            return "\ufffd"
    return _SIMPLE.get(letter, spelled.decode("utf-8"))


def _expression(data: bytes, start: int, end: int) -> str:
    """What a replacement field evaluates, as spelled: without braces, conversion and format."""
    inside = data[start + 1 : end - 1].decode("utf-8", "replace")
    match = re.match(r"\s*([\w.]+(?:\[[^\]]*\]|\([^()]*\))*)\s*(?:[!:=]|\Z)", inside)
    return match[1] if match else inside.strip()[:80]
