"""The shell's builtins, apart from those that declare or read variables."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from klaudit.readers.shell import conditions
from klaudit.readers.shell.call import Call
from klaudit.readers.shell.carried import script_path
from klaudit.readers.shell.code import BuiltCode
from klaudit.readers.shell.declarations import DECLARATIONS
from klaudit.readers.shell.files import absolute
from klaudit.readers.shell.lookup import HOME
from klaudit.readers.shell.printing import echo, printf
from klaudit.readers.shell.reading import mapfile, read
from klaudit.readers.shell.state import Value
from klaudit.readers.shell.text import at_place, hangs_on, join, located, merge_names, owned_by, plain
from klaudit.readers.shell.words import Word

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

# They prepare the shell and set no settings that a command could be given.
_ENVIRONMENT_SCRIPTS = (
    "activate",
    "conda.sh",
    "bashrc",
    "profile",
    "set_env.sh",
    "setvars.sh",
    "modules.sh",
    "env_setup.sh",
)


def _succeed(machine: Machine, call: Call) -> None:
    machine.state.succeed()


def _fail(machine: Machine, call: Call) -> None:
    machine.state.succeed(False)


def _echo(machine: Machine, call: Call) -> None:
    machine.write(echo(call.fields[1:], call.place))
    machine.state.succeed()


def _printf(machine: Machine, call: Call) -> None:
    arguments = call.fields[1:]
    if len(arguments) > 1 and plain(arguments[0].text) == "-v":
        name = plain(arguments[1].text)
        machine.state.assign(name, owned_by(printf(arguments[2:], call.place), name, None))
    else:
        if arguments and plain(arguments[0].text) == "--":
            arguments = arguments[1:]
        machine.write(printf(arguments, call.place))
    machine.state.succeed()


def _test(machine: Machine, call: Call) -> None:
    operands = [field.text for field in call.fields[1:]]
    words = [word for word in call.command.words[1:] if isinstance(word, Word)]
    if call.name == "[":
        if not operands or plain(operands[-1]) != "]":
            machine.state.succeed(False)
            return
        operands, words = operands[:-1], words[:-1]
    try:
        outcome = conditions.holds(operands, call.expander, machine, call.place)
    except conditions.BadTestError:
        outcome = conditions.Outcome(False)
    machine.state.succeed(outcome.holds, outcome.hangs)
    refinement = conditions.refinement(words, call.expander)
    machine.note_test(call.expander.code, call.command.start, call.command.end, refinement)


def _cd(machine: Machine, call: Call) -> None:
    """Folders are taken to exist: that they do on this machine says nothing about the one where the script is meant to run."""
    state = machine.state
    arguments = [field for field in call.fields[1:] if plain(field.text) not in ("-P", "-L", "--")]
    target = plain(arguments[0].text) if arguments else HOME
    if target == "-" or (arguments and hangs_on(arguments[0].text) and not target):
        state.directory = None
    elif target:
        state.directory = absolute(target, state.directory)
    state.succeed()


def _popd(machine: Machine, call: Call) -> None:
    machine.state.directory = None
    machine.state.succeed()


def _pwd(machine: Machine, call: Call) -> None:
    place = call.place
    machine.write(located(machine.state.directory or "/", place, ("PWD",)) + at_place("\n", place))
    machine.state.succeed()


def _eval(machine: Machine, call: Call) -> None:
    code = BuiltCode(join([field.text for field in call.fields[1:]], " "), call.place.source)
    frame = machine.state.child_frame("code", 0)
    frame.code, frame.instructions = code, machine.instructions(code)
    frame.is_tested = frame.is_tested or call.tested
    machine.state.succeed()
    machine.push(frame)


def _source(machine: Machine, call: Call) -> None:
    """A script of the tree runs here; of any other it is not known what it sets."""
    state = machine.state
    if len(call.fields) < 2:
        state.succeed(False)
        return
    path = plain(call.fields[1].text)
    source, taken = machine.find_script(path)
    if source is None or b"\0" in source.data:
        state.is_foreign = state.is_foreign or not posixpath.basename(path).endswith(_ENVIRONMENT_SCRIPTS)
        state.succeed(True, (path or "source",))
        return
    code = machine.code_of(source)
    if taken:
        state.frame.taken = merge_names(state.frame.taken, (taken,))  # also for what comes after it
    frame = state.child_frame("code", 0)
    frame.code, frame.instructions, frame.kind = code, machine.instructions(code), "source"
    frame.file = script_path(source)
    if len(call.fields) > 2:
        frame.positional = tuple(Value(*field) for field in call.fields[2:])
    frame.is_tested = frame.is_tested or call.tested
    state.succeed()
    machine.push(frame)


def _exit(machine: Machine, call: Call) -> None:
    state = machine.state
    if call.arguments and call.arguments[0].isdigit():
        state.succeed(int(call.arguments[0]) & 0xFF == 0)
    state.leave_subshell()


def _return(machine: Machine, call: Call) -> None:
    state = machine.state
    if call.arguments:
        hangs = hangs_on(call.fields[1].text)
        state.succeed(call.arguments[0].isdigit() and int(call.arguments[0]) & 0xFF == 0, hangs)
    if not state.leave_function():
        state.succeed(False)


def _leave_loop(machine: Machine, call: Call) -> None:
    count = int(call.arguments[0]) if call.arguments and call.arguments[0].isdigit() else 1
    machine.state.succeed()
    machine.state.leave_loops(max(count, 1), again=call.name == "continue")


def _look_for_command(machine: Machine, call: Call) -> None:
    """`command -v x`, `type x`, `hash x`: nothing is installed on a bare machine."""
    names = [argument for argument in call.arguments if not argument.startswith("-")]
    state = machine.state
    if names and all(name in state.functions or name in BUILTINS for name in names):
        machine.write(at_place(names[0] + "\n", call.place))
        state.succeed()
    else:
        state.succeed(False, (f"{call.name} {' '.join(names)}",))
        machine.write_unknown(call.place)


BUILTINS: dict[str, Callable[[Machine, Call], None]] = {
    **DECLARATIONS,
    ":": _succeed,
    "true": _succeed,
    "false": _fail,
    "echo": _echo,
    "printf": _printf,
    "[": _test,
    "test": _test,
    "cd": _cd,
    "pushd": _cd,
    "popd": _popd,
    "pwd": _pwd,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "exit": _exit,
    "return": _return,
    "break": _leave_loop,
    "continue": _leave_loop,
    "read": read,
    "mapfile": mapfile,
    "readarray": mapfile,
    "command": _look_for_command,
    "type": _look_for_command,
    "hash": _look_for_command,
    "getopts": _fail,
    **dict.fromkeys(
        [
            "alias",
            "bg",
            "bind",
            "complete",
            "compopt",
            "dirs",
            "disown",
            "enable",
            "fg",
            "history",
            "jobs",
            "kill",
            "shopt",
            "suspend",
            "times",
            "trap",
            "ulimit",
            "umask",
            "unalias",
            "wait",
            "sleep",
        ],
        _succeed,
    ),
}
