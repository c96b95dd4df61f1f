"""The machine that runs programs: it steps through them, starts commands, and gives expansions what they ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from klaudit.model import Problem
from klaudit.readers.document import NOT_FOLLOWED
from klaudit.readers.shell.arithmetic import BadExpressionError
from klaudit.readers.shell.budget import Budget, ExhaustedError
from klaudit.readers.shell.code import BuiltCode, Code, code_of
from klaudit.readers.shell.conditions import Refinement
from klaudit.readers.shell.control import HANDLERS
from klaudit.readers.shell.execution import run_command
from klaudit.readers.shell.expand import MAX_NESTING, Expander
from klaudit.readers.shell.exploration import Explorer, give, in_words, refine, something
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.files import Files
from klaudit.readers.shell.parameters import UnsetVariableError
from klaudit.readers.shell.parse import parse
from klaudit.readers.shell.program import Instruction, Range, Run
from klaudit.readers.shell.state import MAX_FRAMES, Frame, Key, State, Value, Variable
from klaudit.readers.shell.text import (
    EMPTY,
    PRINTED,
    ROOT,
    Fragment,
    Place,
    Text,
    at_place,
    cut,
    decode,
    from_bytes,
    hangs_on,
    length,
)
from klaudit.readers.shell.words import Redirect, Substitution
from klaudit.readers.source import Source

_STEPS_TO_PARSE = 10
_MAX_NAME = 80
_FALSE = "false"  # a failure that is meant
_BLANKS = re.compile(r"(?:\s|\\\n)+")


class Started(Struct, frozen=True):
    """A command that the script starts: its words, each with the place where it is used."""

    words: tuple[tuple[Field, Place], ...]
    place: Place
    assumes: tuple[str, ...]
    directory: str | None
    environment: tuple[tuple[str, Text], ...]
    called_at: Place | None
    taken: tuple[str, ...]
    called: tuple[str, ...]


class Machine:
    """Runs a script once as it is, then each other way it may go."""

    def __init__(self, files: Files, *, follow_scripts: bool, follow_branches: bool = True) -> None:
        self.files = files
        self.follow_scripts = follow_scripts
        self.nesting = 0
        self.budget = Budget() if follow_branches else Budget(runs=0)
        self.explorer = Explorer(self.budget)
        self.started: list[Started] = []
        self.problems: list[Problem] = []
        self.state = State({}, {}, [], ROOT)
        self.substitution_status: tuple[int, tuple[str, ...]] | None = None
        self._unset_inside: tuple[str, Key | None] | None = None
        self._tested: tuple[Code, Range, Refinement | None] | None = None
        self._codes: dict[str, Code] = {}
        self._read: dict[int, Code] = {}

    # --- running -----------------------------------------------------------------------------------------------------------------

    def run(self, code: Code, name: str, arguments: Sequence[Value], variables: dict[str, Variable]) -> None:
        """Run a script as it is, then the other ways."""
        self.state = State(dict(variables), {}, [], ROOT)
        self.state.frames.append(Frame(code, self.instructions(code), 0, "script", tuple(arguments), name, name))
        try:
            self._advance()
        except (ExhaustedError, RecursionError) as error:  # whoever calls us may have gone deep already
            self.problem(code.place(0, 0), f"{NOT_FOLLOWED}: {error}")
            return
        with suppress(ExhaustedError, RecursionError):  # what other ways would start is never complete
            while (way := self.explorer.next_way()) is not None:
                self.state, self.explorer.region = way.state, way.region
                self._advance()

    def instructions(self, code: Code) -> list[Instruction]:
        """The code's instructions; its syntax errors are reported once."""
        if id(code) in self._read:
            return parse(code).instructions
        self.budget.take_step(_STEPS_TO_PARSE)
        program = parse(code)
        self._read[id(code)] = code
        for offset, message in program.errors[:20]:
            self.problem(code.place(offset, offset), message)
        return program.instructions

    def code_of(self, source: Source) -> Code:
        """A script of the tree as code, the same each time."""
        code = self._codes.get(source.path)
        if code is None:
            code = self._codes[source.path] = code_of(source)
        return code

    def _advance(self) -> None:
        take_step = self.budget.take_step
        while not self.state.has_ended:
            frame = self.state.frames[-1]
            instruction = frame.instructions[frame.position]
            frame.position += 1
            take_step()
            try:
                if type(instruction) is Run:
                    run_command(self, instruction)
                else:
                    HANDLERS[type(instruction)](self, instruction)
            except UnsetVariableError as error:
                self.stop_at_unset(error.name, error.key)
            except BadExpressionError:
                self.state.succeed(False)

    def push(self, frame: Frame) -> bool:
        """Go on in a new frame; not if they are too many."""
        if len(self.state.frames) >= MAX_FRAMES:
            self.problem(frame.code.place(0, 0), "commands nested too deeply")
            self.state.succeed(False)
            return False
        self.state.frames.append(frame)
        return True

    def problem(self, place: Place, message: str) -> None:
        problem = Problem(place.source.path, place.source.line_of(place.start), message)
        if problem not in self.problems:
            self.problems.append(problem)

    def start(
        self,
        fields: Sequence[Field],
        sites: Sequence[Place],
        place: Place,
        prefix: Sequence[tuple[str, Text]] = (),
    ) -> None:
        """Note a command that is started."""
        self.budget.take_command()
        state = self.state
        environment = (*state.environment(), *prefix)
        words = tuple(zip(fields, sites, strict=True))
        self.started.append(
            Started(
                words,
                place,
                state.assumes,
                state.shown_directory,
                environment,
                state.frame.called_at,
                state.frame.taken,
                state.frame.called,
            )
        )

    # --- failures and tests ------------------------------------------------------------------------------------------------------

    def check_failure(self, tested: bool, command: Range) -> None:
        """`set -e`: a failure that nothing looks at ends the script, if it is sure."""
        state = self.state
        is_failure = state.status != 0 and not state.status_hangs and not tested
        if is_failure and state.options.errexit and not state.has_ended and not state.frame.is_tested:
            rest = (state.frame.position, len(state.frame.instructions))
            if self.explorer.has_passed(state, rest):
                state.succeed()
                return
            self._go_on_if(command, rest)
            state.leave_subshell()

    def _go_on_if(self, command: Range, rest: Range) -> None:
        """A script is not written to end at a check in it: it is followed as if the command just run had succeeded."""
        state, frame = self.state, self.state.frame
        words = in_words(frame.code, *command)
        if words != _FALSE and self.explorer.wants_on(state, rest):
            way = self.explorer.open(state, rest, words, rest)
            way.succeed()
            if refinement := self.refinement_for(command):
                refine(way, refinement, True, frame.code.place(*command))

    def stop_at_unset(self, name: str, key: Key | None = None) -> None:
        """The instruction just begun needs a variable that is not set: the script ends, but may go on if it is set from outside."""
        if self.explorer.is_nested:
            self._unset_inside = name, key
        else:
            self._go_on_with(name, key)
        self.state.succeed(False)
        self.state.leave_subshell()

    def _go_on_with(self, name: str, key: Key | None) -> None:
        """Begin the present instruction again, now with the variable."""
        state, frame = self.state, self.state.frame
        rest = (frame.position - 1, len(frame.instructions))
        shown = name if key is None else f"{{{name}[{decode(str(key))}]}}"
        if self.explorer.wants(state, rest, rest, shown):
            way = self.explorer.open(state, rest, f"${shown} is set")
            give(way, name, something((name,), frame.code.place(0, 0)), key)

    def note_test(self, code: Code, start: int, end: int, refinement: Refinement | None) -> None:
        """Remember what the test between two positions, just done, says about a variable."""
        self._tested = (code, (start, end), refinement)

    def refinement_for(self, condition: Range) -> Refinement | None:
        """What a condition says about a variable, if it is the test done last and nothing else."""
        if self._tested is None:
            return None
        code, (start, end), refinement = self._tested
        is_it = code is self.state.frame.code and condition[0] == start and condition[1] <= end + 1
        return refinement if is_it else None

    # --- what expansions and tests ask for -----------------------------------------------------------------------------------------

    def find_file(self, path: str) -> Source | None:
        return self.files.find(path, self.state.directory, self.state.frame.file)

    def find_script(self, path: str) -> tuple[Source | None, str]:
        """A script that is to be run, and what to say of it where only the ending of its path tells which it is."""
        source = self.find_file(path)
        if source is None and (source := self.files.at_ending(path)) is not None:
            return source, f"{decode(path)} is taken for {source.path}, which it ends like"
        return source, ""

    def file_exists(self, path: str) -> bool:
        return self.find_file(path) is not None

    def substitute(self, code: Code, part: Substitution) -> Text:
        """What the commands of a substitution print, each unknown character hanging on the substitution as it is written."""
        place = code.place(part.start, part.end)
        name = _named(code, part)
        if self.nesting > MAX_NESTING:
            self.problem(place, "substitutions nested too deeply")
            return at_place("", place, (name,))
        printed = self._run_nested(self._inner_code(code, part), reads_output=part.kind != ">")
        if part.kind in "<>":
            return at_place("/dev/fd/63", place, (name,))
        return _without_final_newlines(_named_output(printed, name, place))

    def printed_by(self, code: Code, part: Substitution) -> Text:
        """What a process substitution that is read from prints."""
        printed = self._run_nested(self._inner_code(code, part), reads_output=True)
        return _named_output(printed, _named(code, part), code.place(part.start, part.end))

    def _inner_code(self, code: Code, part: Substitution) -> Code:
        inner = code.inner.get(part.inner)
        if inner is None:
            inner = code.part(*part.inner)
            if part.kind == "`" and "\\" in inner.text:
                inner = _unescaped_backquotes(inner)
            code.inner[part.inner] = inner
        return inner

    def _run_nested(self, code: Code, *, reads_output: bool) -> Text:
        outer, was_nested = self.state, self.explorer.is_nested
        inner = outer.copy()
        frame = inner.child_frame("subshell", 0)
        frame.code, frame.instructions = code, self.instructions(code)
        inner.frames.append(frame)
        inner.floor = len(outer.frames)
        inner.output = EMPTY if reads_output else None
        self.state, self.explorer.is_nested = inner, True
        self.nesting += 1
        try:
            self._advance()
        finally:
            self.state, self.explorer.is_nested = outer, was_nested
            self.nesting -= 1
        if self._unset_inside is not None and not was_nested:
            self._go_on_with(*self._unset_inside)
            self._unset_inside = None
            self.explorer.wants_on(outer, (outer.frame.position, len(outer.frame.instructions)))  # so it is already
        self.substitution_status = (inner.status, inner.status_hangs)
        return inner.output or EMPTY

    # --- input and output ----------------------------------------------------------------------------------------------------------

    def write(self, text: Text) -> None:
        """Print: kept only where something reads it."""
        state = self.state
        if state.output is not None:
            state.output += text
            self.budget.take_characters(length(text) + len(state.output))

    def write_unknown(self, place: Place) -> None:
        """Print what cannot be known."""
        if self.state.output is not None:
            self.state.output += (Fragment("", place.source, place.start, place.end, hangs_on=(PRINTED,)),)

    def redirect(self, redirects: Sequence[Redirect]) -> None:
        """Connect input and output of the state to what the redirections name."""
        state, code = self.state, self.state.frame.code
        expander = Expander(self, code)
        for redirect in redirects:
            try:
                if redirect.operator in ("<<", "<<<"):
                    text = expander.text(redirect.target)
                    if redirect.operator == "<<<":
                        place = code.place(redirect.target.end, redirect.target.end)
                        text += (Fragment("\n", place.source, place.start, place.end),)
                    state.input = text
                elif redirect.operator == "<":
                    state.input = self._input_from(expander, redirect)
                else:
                    expander.text(redirect.target)
                    if redirect.descriptor == 1 or redirect.operator.startswith("&"):
                        state.output = None
            except BadExpressionError:
                continue

    def _input_from(self, expander: Expander, redirect: Redirect) -> Text | None:
        part = redirect.target.parts[0] if len(redirect.target.parts) == 1 else None
        if isinstance(part, Substitution) and part.kind == "<":
            return self.printed_by(expander.code, part)
        return self.file_text(expander.text(redirect.target))

    def file_text(self, path: Text) -> Text | None:
        """The content of a file of the scanned tree, None for any other."""
        name = "".join([fragment.text for fragment in path])
        source = self.files.content(name, self.state.directory, self.state.frame.file)
        if source is None:
            return None
        return (Fragment(from_bytes(source.data), source, 0, len(source.data)),) if source.data else EMPTY


def _named(code: Code, part: Substitution) -> str:
    """A substitution as it is written, on one line, to name it by."""
    text = _BLANKS.sub(" ", code.text[part.start : part.end]).strip()
    return decode(text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "...)")


def _named_output(text: Text, name: str, place: Place) -> Text:
    """Output in which what is unknown hangs on `name` and stands at `place`."""
    if not any(PRINTED in fragment.hangs_on for fragment in text):
        return text
    characters = "".join([fragment.text for fragment in text])
    hangs = dict.fromkeys(name if each == PRINTED else each for each in hangs_on(text))
    return at_place(characters, place, tuple(hangs))


def _without_final_newlines(text: Text) -> Text:
    characters = "".join([fragment.text for fragment in text])
    kept = characters.rstrip("\n")
    return text if len(kept) == len(characters) else cut(text, 0, len(kept))


def _unescaped_backquotes(code: Code) -> Code:
    """Inside backquotes a backslash escapes itself, the backquote and the dollar sign."""
    pieces: list[Fragment] = []
    position = 0
    for escape in re.finditer(r"\\[\\`$]", code.text):
        pieces += code.written(position, escape.start())
        pieces += code.written(escape.start() + 1, escape.end())
        position = escape.end()
    pieces += code.written(position, len(code.text))
    return BuiltCode(tuple(pieces), code.source)
