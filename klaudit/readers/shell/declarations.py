"""`export`, `declare`, `local`, `readonly`, `unset`, `set`, `shift`, `let`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from klaudit.readers.shell import assignments
from klaudit.readers.shell.arithmetic import BadExpressionError, evaluate
from klaudit.readers.shell.call import Call
from klaudit.readers.shell.lookup import ArithmeticVariables
from klaudit.readers.shell.state import Value
from klaudit.readers.shell.text import Text, cut, hangs_on, merge_names, plain
from klaudit.readers.shell.words import Assignment

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_LOCAL = frozenset({"local", "declare", "typeset"})  # inside functions


def declare(machine: Machine, call: Call) -> None:
    """`declare`, `typeset`, `local`, `export`, `readonly`, with options, names and assignments."""
    state, builtin = machine.state, call.name
    letters = ""
    spelled = (each for each in call.command.words if isinstance(each, Assignment))
    for field in call.fields[1:]:
        text = plain(field.text)
        if not field.text and (assignment := next(spelled, None)) is not None:
            _one(machine, call, builtin, letters, assignment)
        elif text[:1] in ("-", "+") and len(text) > 1:
            letters += text[1:] if text[0] == "-" else ""
        elif "=" in text:
            _from_text(machine, builtin, letters, field.text)
        elif text and "f" not in letters:
            _prepare(machine, builtin, letters, text)
    state.succeed()


def _one(machine: Machine, call: Call, builtin: str, letters: str, assignment: Assignment) -> None:
    name, state = assignment.name, machine.state
    if builtin not in _LOCAL or letters or assignment.elements is not None or assignment.subscript is not None:
        _prepare(machine, builtin, letters, name)
        if "n" in letters and builtin != "export":
            assignments.declare(state, name, refers_to=plain(assignments.value_of(call.expander, assignment)))
            return
        assignments.perform(call.expander, assignment)
        _export(machine, builtin, letters, name)
        return
    text = assignments.value_of(call.expander, assignment)  # `local x=$x`: the right side still sees the outer variable
    _prepare(machine, builtin, letters, name)
    state.assign(name, text, call.expander.code.place(assignment.start, assignment.end))


def _from_text(machine: Machine, builtin: str, letters: str, text: Text) -> None:
    """An argument that only expansion has made an assignment."""
    characters = plain(text)
    name, _, _ = characters.partition("=")
    if not name.isidentifier():
        return
    _prepare(machine, builtin, letters, name)
    machine.state.assign(name, cut(text, len(name) + 1, len(characters)) if len(characters) > len(name) + 1 else ())
    _export(machine, builtin, letters, name)


def _prepare(machine: Machine, builtin: str, letters: str, name: str) -> None:
    state = machine.state
    name = name.partition("[")[0]
    if builtin in _LOCAL and "g" not in letters and _in_function(machine):
        state.hide(name)
        exported = state.variables.get(name)
        state.variables.pop(name, None)
        if exported is not None and exported.is_exported:
            assignments.declare(state, name, is_exported=True)
    attributes: dict[str, bool | str] = {}
    if "A" in letters:
        attributes.update(is_array=True, is_associative=True)
    if "a" in letters:
        attributes["is_array"] = True
    if "i" in letters:
        attributes["is_integer"] = True
    if "l" in letters or "u" in letters:
        attributes["letters"] = "lower" if "l" in letters else "upper"
    if attributes:
        assignments.declare(state, name, **attributes)
    _export(machine, builtin, letters, name)


def _export(machine: Machine, builtin: str, letters: str, name: str) -> None:
    if builtin == "export" or "x" in letters:
        variable = machine.state.variables.get(machine.state.resolve(name))
        if variable is None:
            assignments.declare(machine.state, name, is_exported="n" not in letters)
        else:
            machine.state.variables[machine.state.resolve(name)] = replace(variable, is_exported="n" not in letters)


def _in_function(machine: Machine) -> bool:
    return any(frame.kind == "function" for frame in machine.state.frames)


def unset(machine: Machine, call: Call) -> None:
    state, arguments = machine.state, call.arguments
    functions = "-f" in arguments
    for name in arguments:
        if name.startswith("-"):
            continue
        array, bracket, key = name.partition("[")
        variable = state.variables.get(state.resolve(array))
        if bracket and variable is not None:
            key = key.rstrip("]").strip("\"'")
            items = {k: v for k, v in variable.items.items() if str(k) != key}
            state.variables[state.resolve(array)] = replace(variable, items=items)
        elif functions or (variable is None and name in state.functions):
            state.functions.pop(name, None)
        else:
            state.unset(name)
    state.succeed()


_OPTIONS = {"e": "errexit", "u": "nounset"}
_LONG_OPTIONS = frozenset({"errexit", "nounset", "pipefail"})


def set_(machine: Machine, call: Call) -> None:
    """`set -eu -o pipefail`, `set -- argument ..`."""
    state, arguments = machine.state, call.arguments
    index = 0
    while index < len(arguments) and arguments[index][:1] in ("-", "+") and len(arguments[index]) > 1:
        word, on = arguments[index], arguments[index][0] == "-"
        index += 1
        if word == "--":
            state.frame.positional = tuple(Value(*field) for field in call.fields[index + 1 :])
            state.succeed()
            return
        for letter in word[1:]:
            name = _OPTIONS.get(letter, "")
            if letter == "o" and index < len(arguments):
                name = arguments[index] if arguments[index] in _LONG_OPTIONS else ""
                index += 1
            if name:
                state.options = replace(state.options, **{name: on})
    if index < len(arguments):
        state.frame.positional = tuple(Value(*field) for field in call.fields[index + 1 :])
    state.succeed()


def shift(machine: Machine, call: Call) -> None:
    state, frame = machine.state, machine.state.frame
    arguments = call.arguments
    count = int(arguments[0]) if arguments and arguments[0].isdigit() else 1
    if count > len(frame.positional):
        state.succeed(False, merge_names(*[value.several for value in frame.positional]))
        return
    frame.positional = frame.positional[count:]
    state.succeed()


def let(machine: Machine, call: Call) -> None:
    value = 0
    hangs: tuple[str, ...] = ()
    for field in call.fields[1:]:
        variables = ArithmeticVariables(machine.state, call.place)
        try:
            value = evaluate(plain(field.text), variables)
        except BadExpressionError:
            value = 0
        hangs = hangs_on(field.text) or variables.hangs
    machine.state.succeed(value != 0, hangs)


DECLARATIONS: dict[str, Callable[[Machine, Call], None]] = {
    "declare": declare,
    "typeset": declare,
    "local": declare,
    "export": declare,
    "readonly": declare,
    "unset": unset,
    "set": set_,
    "shift": shift,
    "let": let,
}
