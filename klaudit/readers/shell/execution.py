"""Simple commands: expansion, redirections, and whether a function, a builtin, a text tool or another program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klaudit.readers.shell import assignments
from klaudit.readers.shell.builtins import BUILTINS
from klaudit.readers.shell.call import Call
from klaudit.readers.shell.carried import Carried, carried_code
from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.program import Run
from klaudit.readers.shell.state import Frame, Function, Options, Value, Variable
from klaudit.readers.shell.text import EMPTY, Text, hangs_on, merge_names
from klaudit.readers.shell.utilities import UTILITIES, run_utility
from klaudit.readers.shell.words import Assignment, SimpleCommand, Word
from klaudit.readers.shell.xargs import run_xargs

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine


def run_command(machine: Machine, instruction: Run) -> None:
    """Raises what expansions raise."""
    state, command = machine.state, instruction.command
    frame = state.frame
    expander = Expander(machine, frame.code)
    depth = len(state.frames)
    machine.substitution_status = None
    fields, origins = _expanded(machine, expander, command)
    if fields:
        _with_redirections(machine, Call(command, expander, fields, origins, instruction.tested))
    else:
        _without_words(machine, expander, command)
    if len(state.frames) == depth and not state.has_ended and state.frame is frame:
        machine.check_failure(instruction.tested, (command.start, command.end))


def _expanded(
    machine: Machine, expander: Expander, command: SimpleCommand
) -> tuple[list[Field], list[Word | Assignment]]:
    fields: list[Field] = []
    origins: list[Word | Assignment] = []
    machine.budget.take_words(len(command.words))  # also those that are simple
    for word in command.words:
        found = expander.fields(word) if isinstance(word, Word) else [Field(EMPTY)]  # an assignment: see declarations
        fields += found
        origins += [word] * len(found)
    return fields, origins


def _without_words(machine: Machine, expander: Expander, command: SimpleCommand) -> None:
    for assignment in command.assignments:
        assignments.perform(expander, assignment)
    state = machine.state
    if command.redirects:
        saved = state.input, state.output
        machine.redirect(command.redirects)
        if state.input is not saved[0] and saved[1] is not None and not command.words:  # $(<file)
            state.output = saved[1]
            machine.write(state.input or EMPTY)
            saved = saved[0], state.output
        state.input, state.output = saved
    state.succeed()
    if machine.substitution_status is not None:
        state.status, state.status_hangs = machine.substitution_status


def _with_redirections(machine: Machine, call: Call) -> None:
    state = machine.state
    if not call.command.redirects:
        _dispatch(machine, call)
        return
    depth, before_input, before_output = len(state.frames), state.input, state.output
    machine.redirect(call.command.redirects)
    input_changed, output_changed = state.input is not before_input, state.output is not before_output
    _dispatch(machine, call)
    if len(state.frames) > depth:  # a function: it keeps them until it returns
        inner = state.frames[depth]
        inner.input = (before_input,) if input_changed and inner.input is None else inner.input
        inner.output = (before_output,) if output_changed and inner.output is None else inner.output
        return
    if len(state.frames) == depth:
        state.input = before_input if input_changed else state.input
        state.output = before_output if output_changed else state.output


def _dispatch(machine: Machine, call: Call) -> None:
    state = machine.state
    depth = len(state.frames)
    call, ends_script = _without_keywords(call)
    if not call.fields:
        state.succeed()
        return
    name = "" if hangs_on(call.fields[0].text) else call.name
    if name in state.functions:
        _call_function(machine, call, state.functions[name])
    elif name in BUILTINS:
        _run_builtin(machine, call)
    elif name in UTILITIES:
        run_utility(machine, call)
    else:
        _start(machine, call)
    if ends_script:
        state.end_after(depth)


def _without_keywords(call: Call) -> tuple[Call, bool]:
    """The command without `command`, `builtin` and `exec` before it, and whether the script ends with it."""
    ends_script = False
    while call.fields:
        name = call.name
        if name == "builtin":
            count = 1
        elif name == "command" and call.arguments[:1] not in (["-v"], ["-V"]):
            count = 2 if call.arguments[:1] == ["-p"] else 1
        elif name == "exec":
            ends_script = len(call.fields) > 1
            count = 3 if call.arguments[:1] == ["-a"] else 2 if call.arguments[:1] in (["-c"], ["-l"]) else 1
        else:
            break
        call = call.without_first(count)
    return call, ends_script


def _call_function(machine: Machine, call: Call, function: Function) -> None:
    state = machine.state
    frame = state.frame
    values = _prefix_values(call)
    positional = tuple(Value(*field) for field in call.fields[1:])
    pushed = machine.push(
        Frame(
            function.code,
            function.instructions,
            function.position,
            "function",
            positional,
            frame.name,
            function.file,
            function=call.name,
            is_tested=call.tested or frame.is_tested,
            called_at=frame.called_at,
            taken=frame.taken,
            called=frame.called,
        )
    )
    if pushed:
        for name, text in values:
            state.hide(name)
            state.assign(name, text)


def _run_builtin(machine: Machine, call: Call) -> None:
    state = machine.state
    hidden: dict[str, Variable | None] = {}
    for name, text in _prefix_values(call):
        hidden.setdefault(name, state.variables.get(name))
        state.assign(name, text)
    depth = len(state.frames)
    BUILTINS[call.name](machine, call)
    if len(state.frames) > depth:  # eval, source: until what they run has ended
        state.frame.locals.update(hidden)
        return
    for name, variable in hidden.items():
        if variable is None:
            state.variables.pop(name, None)
        else:
            state.variables[name] = variable


def _prefix_values(call: Call) -> list[tuple[str, Text]]:
    """The values of the assignments before the command."""
    return [(each.name, assignments.value_of(call.expander, each)) for each in call.command.assignments]


def _start(machine: Machine, call: Call) -> None:
    """A program of its own; and the code that its words carry, if they do."""
    state, prefix = machine.state, _prefix_values(call)
    if call.name == "xargs" and run_xargs(machine, call):
        return
    machine.start(call.fields, call.sites, call.place, prefix)
    machine.write_unknown(call.place)
    state.succeed(True, (call.name or "?",))
    carried = carried_code(machine, call)
    if carried is not None:
        _run_carried(machine, call, carried, prefix)


def _run_carried(machine: Machine, call: Call, carried: Carried, prefix: list[tuple[str, Text]]) -> None:
    state = machine.state
    frame = state.child_frame("subshell", 0)
    frame.code = carried.code
    frame.instructions = machine.instructions(carried.code)
    frame.positional, frame.name, frame.file = (
        carried.positional,
        carried.name or frame.name,
        carried.file or frame.file,
    )
    frame.is_tested = False
    frame.taken = merge_names(frame.taken, carried.taken)
    if carried.script:
        frame.called = (*frame.called, carried.script)
    if carried.file and frame.called_at is None:
        frame.called_at = call.place
    if not machine.push(frame):
        return
    state.functions = {}
    for name, text in (*prefix, *carried.given):
        state.assign(name, text)
        assignments.export(state, name)
    state.variables = {} if carried.is_foreign else {k: v for k, v in state.variables.items() if v.is_exported}
    state.is_foreign = state.is_foreign or carried.is_foreign
    state.options = Options()
    if carried.is_foreign:
        state.directory = None
