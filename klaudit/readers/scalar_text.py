"""A YAML or JSON string as a source of its own: which bytes of the file spell which characters of its text."""

from __future__ import annotations

import re

from klaudit.readers.document import ScalarNode
from klaudit.readers.excerpt import Excerpt

_PROPERTIES = re.compile(rb"(?:[&!]\S*[ \t\r\n]+)*")
_BLOCK_HEADER = re.compile(rb"[|>][-+0-9]{0,2}[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_ESCAPE = re.compile(rb"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|(?:\r\n|\r|\n)[ \t]*|[\s\S])")
_SIMPLE = {
    b"0": "\0", b"a": "\a", b"b": "\b", b"t": "\t", b"n": "\n", b"v": "\v", b"f": "\f", b"r": "\r", b"e": "\x1b",
    b"N": "\x85", b"_": "\xa0", b"L": "\u2028", b"P": "\u2029", b"\r": "", b"\n": "",
}  # fmt: skip
_SPACE = b" \t\r\n"


def add_scalar(excerpt: Excerpt, node: ScalarNode) -> bool:
    """Adds the text of a scalar, mapped to its bytes whatever its style.  False, with the excerpt spoilt, where they do not match."""
    data, before = excerpt.source.data, len(excerpt)
    start = _PROPERTIES.match(data, node.start, node.end).end()  # type: ignore[union-attr]  # it matches nothing, too
    end, quote = node.end, data[start : start + 1]
    if quote in (b'"', b"'"):
        start, end = start + 1, end - 1
    elif (header := _BLOCK_HEADER.match(data, start, end)) is not None:
        start = header.end()
    text = node.text.encode("utf-8", "surrogatepass")
    _align(excerpt, text, start, end, quote)
    return excerpt.data[before:] == text


def _align(excerpt: Excerpt, text: bytes, start: int, end: int, quote: bytes) -> None:
    """Walks along text and file at once: they differ only by escapes, and by indentation and folded line ends in the file."""
    data, at, here = excerpt.source.data, start, 0
    while here < len(text):
        if at >= end:
            if text[here] not in _SPACE:
                return
            excerpt.replace(text[here : here + 1], end, end)  # a line end that the file leaves out
            here += 1
        elif quote == b'"' and data[at] == 0x5C:
            match = _ESCAPE.match(data, at, end)
            if match is None:
                return
            spelled = _unescape(match.group())
            excerpt.replace(spelled, at, match.end())
            at, here = match.end(), here + len(spelled)
        elif quote == b"'" and data[at : at + 2] == b"''":
            excerpt.replace(b"'", at, at + 2)
            at, here = at + 2, here + 1
        elif data[at] == text[here]:
            run = _common(data, at, end, text, here, quote)
            excerpt.copy(at, at + run)
            at, here = at + run, here + run
        elif data[at] in _SPACE and text[here] in _SPACE and data[at] != 0x0D:
            if data[at] in b"\r\n" or text[here] not in b"\n":
                excerpt.replace(text[here : here + 1], at, at + 1)
                here += 1
            at += 1
        elif data[at] in _SPACE:
            at += 1
        elif text[here] in _SPACE:
            excerpt.replace(text[here : here + 1], at, at)
            here += 1
        else:
            return


def _common(data: bytes, at: int, end: int, text: bytes, here: int, quote: bytes) -> int:
    """How many bytes are the same, up to the end of the line."""
    length = 1
    while at + length < end and here + length < len(text) and data[at + length] == text[here + length]:
        byte = data[at + length]
        if data[at + length - 1] == 0x0A or (quote == b'"' and byte == 0x5C) or (quote == b"'" and byte == 0x27):
            break
        length += 1
    return length


def _unescape(spelled: bytes) -> bytes:
    letter = spelled[1:2]
    if letter in b"xuU" and len(spelled) > 2:
        code = int(spelled[2:], 16)
        return chr(code).encode("utf-8", "surrogatepass") if code <= 0x10FFFF else b"?"
    simple = _SIMPLE.get(letter)
    return spelled[1:] if simple is None else simple.encode("utf-8")
