"""The instructions that steer: branches, loops, subshells, pipelines, functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from klaudit.readers.shell.arithmetic import BadExpressionError
from klaudit.readers.shell.automaton import TooCostlyError
from klaudit.readers.shell.brackets import DoubleBrackets
from klaudit.readers.shell.code import Code
from klaudit.readers.shell.conditions import BadTestError, Outcome, Refinement
from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.exploration import in_words, leaves, negated, refine, something
from klaudit.readers.shell.lexer import Lexer
from klaudit.readers.shell.patterns import Glob
from klaudit.readers.shell.program import (
    Branch,
    Case,
    Define,
    Evaluate,
    ForEach,
    Jump,
    Loop,
    LoopTest,
    Negate,
    Next,
    Range,
    Redirected,
    Restore,
    Return,
    Stage,
    Subshell,
    Succeed,
)
from klaudit.readers.shell.state import Function, LoopBlock, RedirectBlock, Value
from klaudit.readers.shell.text import EMPTY, decode, hangs_on, merge_names, owned_by, plain
from klaudit.readers.shell.words import Parameter, Word

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_MAX_ROUNDS = 1_000
_ENDLESS = frozenset({"true", ":", "1", ""})


def branch(machine: Machine, instruction: Branch) -> None:
    state, frame = machine.state, machine.state.frame
    succeeded = state.status == 0
    jumps = succeeded == instruction.on_success
    jump_arm, fall_arm = (instruction.target, instruction.join), (frame.position, instruction.target)
    taken, other = (jump_arm, fall_arm) if jumps else (fall_arm, jump_arm)
    if machine.explorer.has_passed(state, other):
        frame.position = other[0]
        state.succeed(not succeeded)
        return
    if machine.explorer.wants(state, taken, other):
        words = in_words(frame.code, *instruction.condition)
        way = machine.explorer.open(state, (other[0], instruction.join), negated(words) if succeeded else words, taken)
        if refinement := machine.refinement_for(instruction.condition):
            refine(way, refinement, not succeeded, frame.code.place(*instruction.condition))
    if jumps:
        frame.position = instruction.target


def case(machine: Machine, instruction: Case) -> None:
    state, frame = machine.state, machine.state.frame
    expander = Expander(machine, frame.code)
    try:
        subject = plain(expander.text(instruction.subject))
        chosen = next(
            (i for i, (patterns, _) in enumerate(instruction.arms) if _matches(subject, patterns, expander)), None
        )
    except BadExpressionError:
        chosen = None
    starts = [target for _, target in instruction.arms] + [instruction.join]
    taken = (starts[chosen], starts[chosen + 1]) if chosen is not None else (instruction.join, instruction.join)
    if chosen is not None and not _has_catch_all(instruction, frame.code):
        _open_no_arm(machine, instruction, taken)
    for index, (patterns, target) in enumerate(instruction.arms):
        other = (target, starts[index + 1])
        if index != chosen and machine.explorer.wants(state, taken, other):
            words, refinement = _arm_condition(instruction, patterns, expander)
            way = machine.explorer.open(state, other, words, taken)
            if refinement:
                refine(way, refinement, True, frame.code.place(*other))
    state.succeed()
    frame.position = taken[0]


def _has_catch_all(case: Case, code: Code) -> bool:
    return any(code.text[each.start : each.end] == "*" for patterns, _ in case.arms for each in patterns)


def _open_no_arm(machine: Machine, case: Case, taken: Range) -> None:
    """The way on which no arm is taken."""
    state, code = machine.state, machine.state.frame.code
    after = (case.join,) * 2
    if machine.explorer.wants(state, taken, after):
        patterns = [decode(code.text[each.start : each.end]) for patterns, _ in case.arms for each in patterns]
        subject = decode(code.text[case.subject.start : case.subject.end])
        machine.explorer.open(state, after, negated(f"{subject} = {' | '.join(patterns)}"), taken)


def _matches(subject: str, patterns: tuple[Word, ...], expander: Expander) -> bool:
    for pattern in patterns:
        try:
            if Glob(expander.glob(pattern)[0]).matches(subject):
                return True
        except TooCostlyError:
            continue
    return False


def _arm_condition(case: Case, patterns: tuple[Word, ...], expander: Expander) -> tuple[str, Refinement | None]:
    """What must hold for an arm to be taken; the catch-all means that no other arm is."""
    text = expander.code.text
    subject = decode(text[case.subject.start : case.subject.end])
    alternatives = [decode(text[pattern.start : pattern.end]) for pattern in patterns]
    if alternatives == ["*"]:
        others = [decode(text[p.start : p.end]) for other, _ in case.arms for p in other if other is not patterns]
        return (negated(f"{subject} = {' | '.join(others)}") if others else f"{subject} = *"), None
    refinement = None
    part = case.subject.parts[0] if len(case.subject.parts) == 1 else None
    if isinstance(part, Parameter) and not part.prefix and part.subscript is None and part.operator in ("", ":-", "-"):
        literal = Glob(expander.glob(patterns[0])[0]).literal if patterns else None
        if literal is not None and part.name not in "@*#?$!-":
            refinement = Refinement(part.name, True, expander.text(patterns[0]))
    return f"{subject} = {' | '.join(alternatives)}", refinement


def for_each(machine: Machine, instruction: ForEach) -> None:
    state, frame = machine.state, machine.state.frame
    values: list[Value] = []
    unknown: tuple[str, ...] = ()
    if instruction.words is None:
        values = list(frame.positional)
    else:
        expander = Expander(machine, frame.code)
        try:
            fields = [field for word in instruction.words for field in expander.fields(word)]
        except BadExpressionError:
            fields = []
        for field in fields:
            if hangs_on(field.text) and not plain(field.text):
                unknown = merge_names(unknown, hangs_on(field.text))
            else:
                values.append(Value(owned_by(field.text, instruction.name, None), field.place))
    again = frame.position
    body = (again, instruction.end)
    if not values and unknown and instruction.words and machine.explorer.wants(state, (instruction.end,) * 2, body):
        words = instruction.words
        listed = in_words(frame.code, words[0].start, words[-1].end)
        way = machine.explorer.open(state, body, f"{instruction.name} in {listed}")
        one = Value(something(unknown, frame.code.place(words[0].start, words[0].end)))
        way.frame.blocks = (*way.frame.blocks, LoopBlock(again, instruction.end, (one,)))
    frame.blocks = (*frame.blocks, LoopBlock(again, instruction.end, tuple(values)))
    state.succeed()


def next_value(machine: Machine, instruction: Next) -> None:
    state, frame = machine.state, machine.state.frame
    block = frame.blocks[-1] if frame.blocks else None
    if not isinstance(block, LoopBlock) or block.rounds >= len(block.values):
        frame.blocks = frame.blocks[:-1]
        frame.position = instruction.end
        return
    value = block.values[block.rounds]
    state.assign(instruction.name, value.text, value.place)
    frame.blocks = (*frame.blocks[:-1], replace(block, rounds=block.rounds + 1))


def loop(machine: Machine, instruction: Loop) -> None:
    frame = machine.state.frame
    frame.blocks = (*frame.blocks, LoopBlock(instruction.again, instruction.end))


def loop_test(machine: Machine, instruction: LoopTest) -> None:
    """Go round again?  What cannot be known is taken for one round, and so is what would never end."""
    state, frame = machine.state, machine.state.frame
    block = frame.blocks[-1] if frame.blocks else None
    if not isinstance(block, LoopBlock):
        return
    wanted = (state.status == 0) != instruction.until
    words = in_words(frame.code, *instruction.condition)
    assumed = negated(words) if instruction.until else words
    is_uncertain = bool(state.status_hangs) or words in _ENDLESS
    body = (frame.position, instruction.end)
    if wanted and words not in _ENDLESS and leaves(state, body):  # a check in the shape of a loop
        after = (instruction.end,) * 2
        if machine.explorer.wants(state, body, after):
            way = machine.explorer.open(state, after, negated(assumed), body)
            way.frame.blocks = way.frame.blocks[:-1]
    if wanted and block.rounds < (1 if is_uncertain else _MAX_ROUNDS):
        frame.blocks = (*frame.blocks[:-1], replace(block, rounds=block.rounds + 1))
        return
    if wanted and not is_uncertain:
        machine.problem(frame.code.place(*instruction.condition), "loop not followed to its end")
    is_skipped = not wanted and block.rounds == 0 and bool(state.status_hangs)
    if is_skipped and machine.explorer.wants(state, (instruction.end,) * 2, body):
        way = machine.explorer.open(state, body, assumed)
        way.frame.blocks = (*frame.blocks[:-1], replace(block, rounds=_MAX_ROUNDS))
    frame.blocks = frame.blocks[:-1]
    frame.position = instruction.end
    state.succeed()


def jump(machine: Machine, instruction: Jump) -> None:
    machine.state.frame.position = instruction.target


def negate(machine: Machine, instruction: Negate) -> None:
    state = machine.state
    state.succeed(state.status != 0, state.status_hangs)


def succeed(machine: Machine, instruction: Succeed) -> None:
    machine.state.succeed()


def subshell(machine: Machine, instruction: Subshell) -> None:
    state, frame = machine.state, machine.state.frame
    start, frame.position = frame.position, instruction.end
    machine.push(state.child_frame("subshell", start))


def stage(machine: Machine, instruction: Stage) -> None:
    state, frame = machine.state, machine.state.frame
    if instruction.is_first:
        frame.failed = (0, ())
    start, frame.position = frame.position, instruction.end
    child = state.child_frame("stage", start)
    child.input = (state.input,)
    child.collects = not instruction.is_last
    if not machine.push(child):
        return
    if not instruction.is_first:
        state.input = frame.piped
    if child.collects:
        child.output = (state.output,)
        state.output = EMPTY


def define(machine: Machine, instruction: Define) -> None:
    state, frame = machine.state, machine.state.frame
    state.functions[instruction.name] = Function(frame.code, frame.instructions, frame.position, frame.file)
    frame.position = instruction.end
    state.succeed()


def redirected(machine: Machine, instruction: Redirected) -> None:
    state, frame = machine.state, machine.state.frame
    frame.blocks = (*frame.blocks, RedirectBlock(state.input, state.output))
    machine.redirect(instruction.redirects)


def restore(machine: Machine, instruction: Restore) -> None:
    if machine.state.frame.blocks:
        machine.state.leave_block()


def end_frame(machine: Machine, instruction: Return) -> None:
    machine.state.pop()


def evaluate(machine: Machine, instruction: Evaluate) -> None:
    """`[[ ]]` and `(( ))`."""
    state, frame = machine.state, machine.state.frame
    expander = Expander(machine, frame.code)
    start, end = instruction.inner
    refinement = None
    try:
        if instruction.kind == "((":
            value, hangs = expander.number(Lexer(frame.code).quoted(start, end), frame.code.place(start, end))
            outcome = Outcome(value != 0, hangs)
        else:
            brackets = DoubleBrackets(expander, machine, start, end)
            outcome = brackets.run()
            refinement = brackets.refinement()
    except (BadTestError, BadExpressionError):
        outcome = Outcome(False)
    state.succeed(outcome.holds, outcome.hangs)
    machine.note_test(frame.code, start - 2, end + 2, refinement)
    machine.check_failure(instruction.tested, (start - 2, end + 2))


HANDLERS: dict[type, Callable[[Machine, Any], None]] = {
    Branch: branch,
    Case: case,
    ForEach: for_each,
    Next: next_value,
    Loop: loop,
    LoopTest: loop_test,
    Jump: jump,
    Negate: negate,
    Succeed: succeed,
    Subshell: subshell,
    Stage: stage,
    Define: define,
    Redirected: redirected,
    Restore: restore,
    Return: end_frame,
    Evaluate: evaluate,
}
