"""Newer grammar made readable to an older `ast`: what it refuses and we do not need is blanked out, byte for byte.

Every byte keeps its place, so positions in the tree still hold.  Covered: f-strings with any expression inside (3.12), t-strings
(3.14), type parameters and `type` statements (3.12), `except A, B:` without parentheses (3.14).
"""

from __future__ import annotations

import re

from klaudit.patterns import rare
from klaudit.readers.python.lexer import Mark, StringToken, lexemes, strings

_TYPE_STATEMENT = rare(rb"^([ \t]*)type[ \t]+([A-Za-z_]\w*)(?=[ \t]*[=\[])", re.MULTILINE)
_PARAMETERS = rare(rb"\b(?:def|class)[ \t]+\w+[ \t]*\[|^[ \t]*type[ \t]+\w+[ \t]*\[", re.MULTILINE)
_BRACKET = re.compile(rb"[()\[\]{}]")
_EXCEPT = rare(rb"^([ \t]*except)([ \t]+[\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)([ \t]*:)", re.MULTILINE)


def in_older_grammar(data: bytes) -> tuple[bytes, frozenset[int]]:
    """The source with newer grammar blanked, and the offsets of strings that now stand for f-strings.

    Raises LexError where the source has an unterminated string.
    """
    tokens = list(lexemes(data))
    older = bytearray(data)
    blanked = set()
    for token in tokens:
        if isinstance(token, StringToken) and token.formatted and _needs_newer(data, token):
            older[token.start : token.end] = _neutral(data[token.start : token.end])
            blanked.add(token.start)
    code = _without_strings(data, tokens)
    for match in _PARAMETERS.finditer(code):
        start = match.end() - 1
        older[start : _close(code, start)] = re.sub(rb"[^\r\n]", b" ", data[start : _close(code, start)])
    for match in _TYPE_STATEMENT.finditer(code):
        width = match.end(2) - match.end(1)
        older[match.end(1) : match.end(2)] = match[2].ljust(width)
    for match in _EXCEPT.finditer(code):
        older[match.start(2) : match.end(2)] = b" " * len(match[2])
    return bytes(older), frozenset(blanked)


def _needs_newer(data: bytes, token: StringToken) -> bool:
    if "t" in token.prefix:
        return True
    quote = data[token.body_end : token.end]
    for start, end in token.fields:
        inside = data[start:end]
        if quote in inside or b"\\" in inside or b"#" in inside or (len(quote) == 1 and b"\n" in inside):
            return True
        if any(inner.formatted and _needs_newer(data, inner) for inner in strings(data, start + 1, end - 1)):
            return True
    return False


def _neutral(literal: bytes) -> bytes:
    """A plain string literal of the same length and lines."""
    if b"\n" not in literal and b"\r" not in literal:
        return b'"' + b"_" * (len(literal) - 2) + b'"'
    body = re.sub(rb"[^\r\n]", b"_", literal[3:-3])  # a field over lines is at least f"{x\n}" long
    return b'"""' + body + b'"""'


def _close(code: bytes, at: int) -> int:
    """Just after the bracket that closes the one at `at`; `at` itself where none does."""
    depth = 0
    for match in _BRACKET.finditer(code, at):
        depth += 1 if match.group() in b"([{" else -1
        if depth == 0:
            return match.end()
    return at


def _without_strings(data: bytes, tokens: list[StringToken | Mark]) -> bytes:
    code = bytearray(data)
    for token in tokens:
        if isinstance(token, StringToken) or token.kind == "comment":
            code[token.start : token.end] = re.sub(rb"[^\r\n]", b"_", data[token.start : token.end])
    return bytes(code)
