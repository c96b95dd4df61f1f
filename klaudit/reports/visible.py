"""Text from scanned files made fit to print: nothing in it can move the cursor, change colours, reorder what is read or give commands.

CI systems take commands from what a job prints: GitHub from lines that begin with `::`, after spaces, and from `##[` anywhere in a line,
others from `##vso[` and `##teamcity[`.
"""

from __future__ import annotations

import re
import unicodedata

_COMMAND = re.compile(r"##(?=(?:vso|teamcity)?\[)", re.IGNORECASE)
_COMMAND_LINE = re.compile(r"(\s*):(?=:)")


def visible(text: str) -> str:
    """Control, format and unassigned characters, lone surrogates and odd spaces as escapes (`\\x1b`, `\\u202e`); the rest as it is."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else escape(character) for character in text)
    return _COMMAND.sub(r"#\\x23", text) if "##" in text else text


def inert(line: str) -> str:
    """A line, with or without its end, in which no CI system sees a command."""
    if "::" in line:
        line = _COMMAND_LINE.sub(r"\1\\x3a", line, count=1) if _COMMAND_LINE.match(line) else line
    return _COMMAND.sub(r"#\\x23", line) if "##" in line else line


def escape(character: str) -> str:
    code = ord(character)
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def cells(text: str) -> int:
    """How many columns of a terminal printable text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Me":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The text, or as much of its beginning as leaves room for dots; `width` in columns, at least 4."""
    if cells(text) <= width:
        return text
    taken, room = 0, width - 3
    for index, character in enumerate(text):
        taken += _cells_of(character)
        if taken > room:
            return text[:index] + "..."
    return text


def fold(text: str, width: int, first: int | None = None) -> list[str]:
    """The text in lines of at most `width` columns (the first one `first`), broken at spaces, else after `/,=`, else anywhere."""
    lines: list[str] = []
    room = width if first is None else first
    while cells(text) > room:
        end = _fitting(text, room)
        at = text.rfind(" ", 1, end + 1)
        if at < 1:
            at = max(text.rfind(mark, room // 2, end) + 1 for mark in "/,=")
        at = at if at > 0 else end
        lines.append(text[:at].rstrip(" "))
        text = text[at:].lstrip(" ")
        room = width
    return [*lines, text] if text or not lines else lines


def _fitting(text: str, width: int) -> int:
    """How many characters fit; at least one."""
    if text[: width + 1].isascii():
        return max(width, 1)
    taken = 0
    for index, character in enumerate(text):
        taken += _cells_of(character)
        if taken > width:
            return max(index, 1)
    return len(text)
