"""`xargs`: the commands it builds from an input that is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from klaudit.readers.shell.call import Call
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.text import Text, cut, hangs_on, plain

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_MAX_COMMANDS = 200
_WITH_VALUE = frozenset({"-n", "-P", "-L", "-s", "-E", "-a", "--max-args", "--max-procs", "--max-lines", "--arg-file"})
_WORDS = re.compile(r"[^ \t\n]+")
_LINES = re.compile(r"[^\n]+")


def run_xargs(machine: Machine, call: Call) -> bool:
    """Start what xargs would; False where its input is not known."""
    state = machine.state
    if state.input is None or hangs_on(state.input):
        return False
    index, per_command, replaced, separate = 1, 0, "", _WORDS
    words = [plain(field.text) for field in call.fields]
    while index < len(words) and words[index].startswith("-"):
        option = words[index]
        index += 1
        if option.startswith(("-I", "--replace")):
            replaced, separate = option[2:].removeprefix("replace=") or _at(words, index), _LINES
            index += option == "-I"
        elif option.startswith(("-d", "--delimiter")):
            separate = _LINES
            index += option in ("-d", "--delimiter")
        elif option in ("-n", "--max-args"):
            per_command = int(_at(words, index)) if _at(words, index).isdigit() else 0
            index += 1
        elif option.startswith("-n") and option[2:].isdigit():
            per_command = int(option[2:])
        elif option in _WITH_VALUE:
            index += 1
    if index >= len(words):
        return False
    items = [cut(state.input, *found.span()) for found in separate.finditer(plain(state.input))]
    for number, fields in enumerate(_commands(call.fields[index:], items, per_command, replaced)):
        if number == _MAX_COMMANDS:
            break
        sites = call.sites[index:] + [call.place] * (len(fields) - len(call.sites[index:]))
        machine.start(fields, sites, call.place)
    machine.write_unknown(call.place)
    state.succeed(True, ("xargs",))
    return True


def _at(words: list[str], index: int) -> str:
    return words[index] if index < len(words) else ""


def _commands(command: list[Field], items: list[Text], per_command: int, replaced: str) -> Iterator[list[Field]]:
    if replaced:
        for item in items:
            yield [Field(_with_item(field.text, replaced, item), field.place) for field in command]
        return
    size = per_command or max(len(items), 1)
    for start in range(0, max(len(items), 1), size):
        yield command + [Field(item) for item in items[start : start + size]]


def _with_item(text: Text, replaced: str, item: Text) -> Text:
    """The text with `item` for each `{}`."""
    characters, position, pieces = plain(text), 0, list[Text]()
    at = characters.find(replaced)
    while at != -1:
        pieces += [cut(text, position, at), item] if at > position else [item]
        position = at + len(replaced)
        at = characters.find(replaced, position)
    if not pieces:
        return text
    if position < len(characters):
        pieces.append(cut(text, position, len(characters)))
    return tuple(fragment for piece in pieces for fragment in piece)
