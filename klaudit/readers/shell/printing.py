"""`echo` and `printf`, whose output keeps the origin of what they print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from klaudit.patterns import rare
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.text import EMPTY, Fragment, Place, Text, at_place, from_bytes, hangs_on, join, plain

_ESCAPE = rare(r"\\(?:0([0-7]{0,3})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|([abeEfnrtv\\\"'c]))")
_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "c": "",
}
_FORMAT = rare(r"%(%|([-+ #0]*)(\d{0,4}|\*)(?:\.(\d{1,4}|\*))?([a-zA-Z]))")
_UNSAFE = re.compile(r"[^A-Za-z0-9_@%+=:./#~-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_ROUNDS = 2_000


def echo(fields: Sequence[Field], place: Place) -> Text:
    """What `echo` with these arguments prints."""
    newline, escapes, index = True, False, 0
    while index < len(fields) and re.fullmatch(r"-[neE]+", option := plain(fields[index].text)):
        newline = newline and "n" not in option
        escapes = (escapes or "e" in option) and "E" not in option
        index += 1
    text = join([field.text for field in fields[index:]], " ")
    if escapes:
        text = _unescaped_text(text)
    return text + _new_line(place) if newline else text


def printf(fields: Sequence[Field], place: Place) -> Text:
    """What `printf format argument ..` prints; the format is used again while arguments are left."""
    if not fields:
        return EMPTY
    template, arguments = fields[0].text, [field.text for field in fields[1:]]
    format_text, hangs = plain(template), hangs_on(template)
    pieces: list[Fragment] = []
    used, rounds = 0, 0
    while rounds == 0 or used < len(arguments):
        before = used
        position = 0
        for found in _FORMAT.finditer(format_text):
            pieces += at_place(_unescaped(format_text[position : found.start()]), place, hangs)
            position = found.end()
            if found[1] == "%":
                pieces += at_place("%", place)
                continue
            argument = arguments[used] if used < len(arguments) else None
            used += 1
            pieces += _formatted(found, argument, place)
        pieces += at_place(_unescaped(format_text[position:]), place, hangs)
        rounds += 1
        if used == before or rounds > _MAX_ROUNDS:
            break
    return tuple(pieces)


def in_quotes(text: str) -> str:
    """The text as `${name@Q}` writes it."""
    if _CONTROL.search(text):
        return "$'" + _CONTROL.sub(_spelled_control, text.replace("\\", "\\\\").replace("'", "\\'")) + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def _escaped(text: str) -> str:
    """The text as `printf %q` writes it."""
    if not text or _CONTROL.search(text):
        return in_quotes(text)
    escaped = _UNSAFE.sub(r"\\\g<0>", text)
    return "\\" + escaped if escaped[0] in "#~" else escaped


def _spelled_control(found: re.Match[str]) -> str:
    character = found.group()
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\E"}.get(character, f"\\{ord(character):03o}")


def _formatted(found: re.Match[str], argument: Text | None, place: Place) -> Text:
    flags, width, precision, letter = found[2], found[3], found[4], found[5]
    text = plain(argument) if argument is not None else ""
    if letter == "s" and not width and precision is None:
        return argument or EMPTY
    hangs = hangs_on(argument) if argument is not None else ()
    if letter == "q":
        return at_place(_escaped(text), place, hangs)
    if letter == "b":
        return at_place(_unescaped(text), place, hangs)
    if "*" in (width, precision):
        return at_place("", place, ("printf",))
    specification = f"%{flags}{width}{'' if precision is None else '.' + precision}"
    try:
        if letter in "sc":
            return at_place((specification + "s") % (text[:1] if letter == "c" else text), place, hangs)
        if letter in "diouxX":
            number = ord(text[1]) if text[:1] in ("'", '"') and len(text) > 1 else int(text, 0) if text.strip() else 0
            return at_place((specification + ("d" if letter in "iu" else letter)) % number, place, hangs)
        if letter in "eEfFgG":
            return at_place((specification + letter) % float(text or 0), place, hangs)
    except ValueError:
        return at_place((specification + "d") % 0, place, hangs)
    return at_place("", place, ("printf",))


def _unescaped_text(text: Text) -> Text:
    return tuple(piece if "\\" not in piece.text else piece._replace(text=_unescaped(piece.text)) for piece in text)


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        zero, byte, octal, named = escape.groups()
        if named:
            return _NAMED.get(named, named)
        return from_bytes(bytes([(int(byte, 16) if byte else int(zero or octal or "0", 8)) & 0xFF]))

    return _ESCAPE.sub(character, text) if "\\" in text else text


def _new_line(place: Place) -> Text:
    return (Fragment("\n", place.source, place.end, place.end),)
