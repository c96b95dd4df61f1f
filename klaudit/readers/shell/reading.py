"""`read` and `mapfile`: variables out of standard input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from klaudit.readers.shell.call import Call
from klaudit.readers.shell.fields import Chunk, split
from klaudit.readers.shell.state import Key, Value
from klaudit.readers.shell.text import EMPTY, Text, at_place, cut, hangs_on, length, owned_by, plain

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_BACKSLASH = re.compile(r"\\(.?)")
_WITH_VALUE = "adinNptu"


def read(machine: Machine, call: Call) -> None:
    """`read [-r] [-d delimiter] [-a array] name ..`.  Fails at the end of the input, and on input that is not known."""
    options, names = _options(call)
    state = machine.state
    line, found = _take_line(machine, _delimiter(options))
    if line is None:
        unknown = at_place("", call.place, ("read",))
        for name in names or ["REPLY"]:
            state.assign(name, unknown)
        state.succeed(False, ("read",))
        return
    if "r" not in options:
        line = tuple(
            [piece._replace(text=_BACKSLASH.sub(r"\1", piece.text)) if "\\" in piece.text else piece for piece in line]
        )
    if "a" in options:
        parts = split([Chunk(line, "split")], state.ifs())
        state.assign_array(
            options["a"],
            {i: Value(owned_by(part.text, options["a"], None), None, part.several) for i, part in enumerate(parts)},
        )
    elif not names:
        state.assign("REPLY", owned_by(line, "REPLY", None))
    else:
        _assign_fields(machine, line, names)
    state.succeed(found, hangs_on(line))


def mapfile(machine: Machine, call: Call) -> None:
    """`mapfile [-t] array`."""
    options, names = _options(call, "dnOsucC")
    state, name = machine.state, (names or ["MAPFILE"])[0]
    if state.input is None:
        state.assign_array(name, {0: Value(at_place("", call.place, ("mapfile",)), None, ("mapfile",))})
        state.succeed(True)
        return
    items: dict[Key, Value] = {}
    delimiter = _delimiter(options)
    while state.input is not None and length(state.input):
        line, found = _take_line(machine, delimiter)
        if line is None:
            break
        if found and "t" not in options:
            line += at_place(delimiter, call.place)
        items[len(items)] = Value(owned_by(line, name, None), None, hangs_on(line))
        machine.budget.take_step()
    if not items and hangs_on(state.input or EMPTY):
        items[0] = Value(state.input or EMPTY, None, hangs_on(state.input or EMPTY))
    state.assign_array(name, items)
    state.succeed()


def _options(call: Call, with_value: str = _WITH_VALUE) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    arguments = call.arguments
    index = 0
    while index < len(arguments) and arguments[index].startswith("-") and len(arguments[index]) > 1:
        letters = arguments[index][1:]
        index += 1
        if letters == "-":
            break
        for position, letter in enumerate(letters):
            if letter not in with_value:
                options[letter] = ""
                continue
            value = letters[position + 1 :]
            if not value and index < len(arguments):
                value = arguments[index]
                index += 1
            options[letter] = value
            break
    return options, arguments[index:]


def _delimiter(options: dict[str, str]) -> str:
    if "d" not in options:
        return "\n"
    return options["d"][:1] or "\0"


def _take_line(machine: Machine, delimiter: str) -> tuple[Text | None, bool]:
    """The next line of the input, and whether its delimiter was there; None if the input is not known."""
    state = machine.state
    if state.input is None:
        return None, False
    text = plain(state.input)
    if not text and hangs_on(state.input):
        return None, False
    end = text.find(delimiter)
    found = end != -1
    end = end if found else len(text)
    line = cut(state.input, 0, end) if end else EMPTY
    state.input = cut(state.input, end + found, len(text)) if end + found < len(text) else EMPTY
    machine.budget.take_characters(len(text))
    return line, found


def _assign_fields(machine: Machine, line: Text, names: list[str]) -> None:
    """One field for each name, the rest of the line for the last."""
    state = machine.state
    ifs = state.ifs()
    blanks = "".join(character for character in ifs if character in " \t\n")
    text = plain(line)
    position = 0
    for index, name in enumerate(names):
        while position < len(text) and text[position] in blanks:
            position += 1
        if index == len(names) - 1:
            end = len(text)
            while end > position and text[end - 1] in blanks:
                end -= 1
            following = end
        else:
            separator = re.compile(f"[{re.escape(ifs)}]").search(text, position) if ifs else None
            end = separator.start() if separator else len(text)
            following = end
            while following < len(text) and text[following] in blanks:
                following += 1
            if following < len(text) and text[following] in ifs and text[following] not in blanks:
                following += 1
        value = cut(line, position, end) if end > position else EMPTY
        state.assign(name, owned_by(value, name, None))
        position = following
