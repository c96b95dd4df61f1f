"""Giving variables their values."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.readers.shell.arithmetic import evaluate
from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.lookup import ArithmeticVariables, number_at
from klaudit.readers.shell.state import Key, State, Value, Variable
from klaudit.readers.shell.text import EMPTY, Text, decode, owned_by, plain
from klaudit.readers.shell.words import Assignment, Element, Plain, Word


def perform(expander: Expander, assignment: Assignment) -> None:
    """Do one assignment.  Raises what expansions raise."""
    state = expander.host.state
    if assignment.elements is not None:
        _assign_elements(expander, assignment.name, assignment.elements, append=assignment.append)
        return
    value, code = assignment.value, expander.code
    place = code.place(assignment.start, assignment.end)
    if value.is_simple and not assignment.append and assignment.subscript is None:
        variable = state.variables.get(assignment.name)
        if variable is None or not variable.is_integer:
            state.assign(assignment.name, code.written(value.start, value.end, assignment.name), place)
            return
    key = None if assignment.subscript is None else expander.key(assignment.name, assignment.subscript, place)
    state.assign(assignment.name, value_of(expander, assignment, key), place, key=key)


def value_of(expander: Expander, assignment: Assignment, key: Key | None = None) -> Text:
    """The text that a scalar assignment gives."""
    state, place = expander.host.state, expander.code.place(assignment.start, assignment.end)
    text = owned_by(expander.text(assignment.value, is_assigned=True), assignment.name, place)
    variable = state.variables.get(state.resolve(assignment.name))
    if variable is not None and variable.is_integer:
        number, hangs = expander.number(assignment.value, place)
        if assignment.append:
            number += evaluate(plain(_old_text(variable, key)), ArithmeticVariables(state, place))
        return number_at(number, place, hangs, assignment.name)
    if assignment.append and variable is not None:
        return _old_text(variable, key) + text
    return text


def _old_text(variable: Variable, key: Key | None) -> Text:
    value = variable.scalar if key is None else variable.items.get(key)
    return value.text if value is not None else EMPTY


def _assign_elements(expander: Expander, name: str, elements: tuple[Element, ...], *, append: bool) -> None:
    state = expander.host.state
    variable = state.variables.get(state.resolve(name))
    is_associative = variable is not None and variable.is_associative
    items: dict[Key, Value] = dict(variable.items) if append and variable is not None else {}
    following = max((key for key in items if isinstance(key, int)), default=-1) + 1
    for element in elements:
        place = expander.code.place(element.value.start, element.value.end)
        if element.key is not None:
            key_text = expander.text(element.key)
            key: Key = plain(key_text).strip("\"'") if is_associative else expander.number(element.key, place)[0]
            items[key] = Value(owned_by(expander.text(element.value), name, place), place)
            following = key + 1 if isinstance(key, int) else following
            continue
        fields = expander.fields(element.value)
        for field in fields:
            is_whole = len(fields) == 1
            several = field.several or _matched(element.value, field, expander)
            text = owned_by(field.text, name, place)
            value = Value(text, field.place or (place if is_whole else None), several)
            items[following] = value
            following += 1
    state.assign_array(name, items)


def _matched(word: Word, field: Field, expander: Expander) -> tuple[str, ...]:
    """What the number of elements hangs on that a word gives as a pattern for the names of files."""
    text = expander.code.text
    is_pattern = any(
        isinstance(part, Plain)
        and not part.quoted
        and ("*" in (spelled := text[part.start : part.end]) or "?" in spelled)
        for part in word.parts
    )
    return (decode(plain(field.text)),) if is_pattern else ()


def declare(state: State, name: str, **attributes: bool | str) -> None:
    """Give a variable attributes, creating it without a value if need be."""
    name = state.resolve(name)
    variable = state.variables.get(name) or Variable({})
    state.variables[name] = replace(variable, **attributes)


def export(state: State, name: str) -> None:
    name = state.resolve(name)
    variable = state.variables.get(name)
    if variable is not None:
        state.variables[name] = replace(variable, is_exported=True)
