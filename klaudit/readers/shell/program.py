"""A script as a flat list of instructions.

Flat, because a run is then no more than a position, a stack of frames and some variables: it can be copied at a branch to follow the
other way too, and no nesting of the script becomes a recursion of ours.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from klaudit.readers.shell.words import Redirect, SimpleCommand, Word

Range: TypeAlias = tuple[int, int]


class Run(Struct):
    """A simple command.  `tested`: its failure is looked at, so `set -e` does not end the script."""

    command: SimpleCommand
    tested: bool = False


class Evaluate(Struct):
    """`[[ .. ]]` or `(( .. ))`; `inner` is what stands between the brackets."""

    kind: Literal["[[", "(("]
    inner: Range
    tested: bool = False


class Branch(Struct):
    """Go to `target` if the last status is success (`on_success`) or failure; both ways meet at `join`.

    `condition` is the range of the code that decides, as the script words it.
    """

    on_success: bool
    condition: Range
    target: int = -1
    join: int = -1


class Case(Struct):
    """Go to the first arm with a matching pattern, else to `join`."""

    subject: Word
    arms: list[tuple[tuple[Word, ...], int]] = field(default_factory=list)
    join: int = -1


class ForEach(Struct):
    """Begin a `for` over `words` (the positional parameters if None).  The `Next` that follows takes one each time."""

    name: str
    words: tuple[Word, ...] | None
    end: int = -1


class Next(Struct):
    """Give `name` the next value, or leave the loop."""

    name: str
    end: int = -1


class Loop(Struct):
    """Begin a loop decided by a `LoopTest`; `again` is where `continue` goes."""

    again: int = -1
    end: int = -1


class LoopTest(Struct):
    until: bool
    condition: Range
    end: int = -1


class Jump(Struct):
    target: int = -1


class Negate(Struct):
    """`!`"""


class Succeed(Struct):
    """A command put in the background succeeds at once."""


class Subshell(Struct):
    """Run the instructions up to the next matching `Return` on a copy of the state, then go on at `end`."""

    end: int = -1


class Stage(Struct):
    """One command of a pipeline: a subshell that reads what the stage before wrote."""

    is_first: bool
    is_last: bool
    end: int = -1


class Define(Struct):
    """A function whose instructions follow; go on at `end`."""

    name: str
    end: int = -1


class Redirected(Struct):
    """Redirections of the compound command up to the matching `Restore`."""

    redirects: tuple[Redirect, ...]


class Restore(Struct):
    pass


class Return(Struct):
    """The end of a function, a subshell, a sourced script."""


Instruction: TypeAlias = (
    Run
    | Evaluate
    | Branch
    | Case
    | ForEach
    | Next
    | Loop
    | LoopTest
    | Jump
    | Negate
    | Succeed
    | Subshell
    | Stage
    | Define
    | Redirected
    | Restore
    | Return
)


class Program(Struct):
    """`errors` are (offset, message) of what could not be parsed."""

    instructions: list[Instruction]
    errors: list[tuple[int, str]] = field(default_factory=list)


_TARGETS: dict[type, tuple[str, ...]] = {
    Branch: ("target", "join"),
    Case: ("join",),
    ForEach: ("end",),
    Next: ("end",),
    Loop: ("again", "end"),
    LoopTest: ("end",),
    Jump: ("target",),
    Subshell: ("end",),
    Stage: ("end",),
    Define: ("end",),
}


def insert(instructions: list[Instruction], position: int, instruction: Instruction) -> None:
    """Put an instruction before the one at `position`; what jumps to that position reaches the new one.

    Nothing before `position` may jump beyond it.
    """
    for moved in instructions[position:]:
        for name in _TARGETS.get(type(moved), ()):
            target = getattr(moved, name)
            if target > position:
                setattr(moved, name, target + 1)
        if isinstance(moved, Case):
            moved.arms = [(patterns, start + (start > position)) for patterns, start in moved.arms]
    instructions.insert(position, instruction)


def mark_tested(instructions: list[Instruction], start: int, end: int) -> None:
    """The outcome of these instructions is looked at."""
    for instruction in instructions[start:end]:
        if isinstance(instruction, Run | Evaluate):
            instruction.tested = True
