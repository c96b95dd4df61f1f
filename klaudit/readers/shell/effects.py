"""Whether it matters that a stretch of a program is run, or that it is not: only then is the other way of a branch followed."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from klaudit.readers.shell.code import Code
from klaudit.readers.shell.program import Define, Evaluate, ForEach, Instruction, Run

_HARMLESS = frozenset(
    [
        "echo",
        "printf",
        "true",
        "false",
        ":",
        "mkdir",
        "rm",
        "cp",
        "mv",
        "ls",
        "cat",
        "sleep",
        "wait",
        "touch",
        "chmod",
        "kill",
        "pkill",
        "trap",
        "date",
        "set",
        "shopt",
        "ulimit",
        "pip",
        "pip3",
        "apt",
        "apt-get",
        "git",
        "wget",
        "curl",
        "tee",
        "tail",
        "head",
    ]
)
_LEAVING = frozenset({"exit", "return", "break", "continue"})
_CHANGING = frozenset(
    [
        "export",
        "local",
        "declare",
        "readonly",
        "typeset",
        "cd",
        "pushd",
        "popd",
        "shift",
        "unset",
        "read",
        "mapfile",
        "readarray",
        "let",
    ]
)
_MANY = 2_000  # instructions: nobody writes such arms, and a chain of commands would be looked through once for each of them
_ANYTHING = frozenset({"source", ".", "eval"})


class Effects(NamedTuple):
    """`starts`: it may start something; `changes`: it changes what later commands are; `leaves`: it ends the script or loop."""

    starts: bool
    changes: bool
    leaves: bool

    @property
    def matter_when_run(self) -> bool:
        return self.starts or (self.changes and not self.leaves)

    @property
    def matter_when_skipped(self) -> bool:
        return self.changes or self.leaves


def effects(
    instructions: Sequence[Instruction], start: int, end: int, code: Code, functions: Container[str]
) -> Effects:
    """What instructions `start`..`end` may do where these functions are defined; so many of them may do anything."""
    if end - start > _MANY:
        return Effects(starts=True, changes=True, leaves=False)
    starts = changes = leaves = False
    for instruction in instructions[start:end]:
        if isinstance(instruction, Run):
            command = instruction.command
            if not command.words:
                changes |= bool(command.assignments)
                continue
            first = command.words[0]
            name = code.text[first.start : first.end]
            if name in _LEAVING:
                leaves = True
            elif name in _CHANGING:
                changes = True
            elif name in _ANYTHING or name in functions:
                starts = changes = True
            elif name not in _HARMLESS:
                starts = True
        elif isinstance(instruction, Define | ForEach):
            changes = True
        elif isinstance(instruction, Evaluate):
            changes |= instruction.kind == "(("
    return Effects(starts, changes, leaves)
