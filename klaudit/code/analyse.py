"""Entry point: the KL formulas of one Python file and where each one's value goes.  Nothing of the file is executed."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import islice

from klaudit.code.flow.formulas import formulas
from klaudit.code.flow.sinks import parts, targets
from klaudit.code.graph import Node, TooManyNodesError
from klaudit.code.interpreter import BudgetError, Interpreter
from klaudit.code.interpreter.machine import MAX_STEPS, Frame
from klaudit.code.modules import FunctionInfo, Module, Program
from klaudit.code.registries import entries_of
from klaudit.code.result import CodeResult, Formula
from klaudit.code.screen import is_test, may_matter, screen, tables_picked_from, touches_log_probabilities
from klaudit.model import Problem, Span
from klaudit.readers.source import Source, UnreadableError

MAX_NESTED = 4  # functions inside functions
MAX_ROOTS = 2_000  # functions of one file that are read from their own parameters; generated files have more
MAX_FUNCTIONS = 400  # run in one file, nested ones included
MAX_STEPS_A_FILE = 60_000  # expressions evaluated for all of them; the largest trainers take 9,000
LEAST_STEPS = 1_500  # what a function gets after others have used that up

_CALLED = re.compile(rb"[\w\x80-\xff]+(?=\()")  # names before an opening bracket


def analyse(
    source: Source, *, load: Callable[[str], Source | None] = lambda path: None, prefilter: bool = True
) -> CodeResult:
    """All KL formulas of a file.

    `load` gives another file of the same tree by its path relative to the root.  Without `prefilter` every function of the
    file is run, whatever its bytes and its name say.  Raises UnreadableError where the file is not Python.
    """
    if prefilter and (is_test(source.path) or not may_matter(source.data)):
        return CodeResult(source.path, ())
    collecting = gc.isenabled()
    gc.disable()  # syntax trees and graphs are all live while they grow: collecting costs more than the analysis itself
    try:
        return _Analysis(Program(source, load), prefilter=prefilter).result()
    finally:
        if collecting:
            gc.enable()


class _Analysis:
    def __init__(self, program: Program, *, prefilter: bool) -> None:
        self.program = program
        self.prefilter = prefilter
        self.mailbox: dict[str, Node] = {}
        self.found: list[tuple[int, Formula]] = []  # with the line of the function
        self.problems: list[Problem] = []
        self.producers: set[bytes] = set()  # functions that give a KL
        self.left_open: set[bytes] = set()  # functions whose parameters decide what a KL is or how much it counts
        self.known: dict[FunctionInfo, frozenset[str]] = {}  # functions that were run, with what the mailbox held then
        self.functions_run = 0
        self.steps_left = MAX_STEPS_A_FILE
        self.picks = bool(tables_picked_from(program.main.source.data))

    def result(self) -> CodeResult:
        self._screened()
        if not self.prefilter:
            self._everything_else()
        found = [formula for _, formula in sorted(self.found, key=lambda item: item[0])]
        return CodeResult(self.program.main.source.path, tuple(_distinct(found)), tuple(self.problems))

    def _screened(self) -> None:
        screened = screen(self.program.main)
        if len(screened.direct) + len(screened.passing) > MAX_ROOTS:
            self._note_too_many()
        direct = screened.direct[:MAX_ROOTS]
        self._functions(direct)
        if screened.top_level_matters or self._minimises(screened.top_level):
            self._top_level(screened.top_level)
        for info in screened.passing[: MAX_ROOTS - len(direct)]:
            if self._calls_what_matters(info) or self._passes_on(info):
                self._function(info)
        callers = filter(self._is_caller, screened.rest)
        left = max(MAX_ROOTS - len(direct) - len(screened.passing), 0)
        for info in islice(callers, left):
            self._function(info)
        if left and next(callers, None) is not None:
            self._note_too_many()

    def _everything_else(self) -> None:
        """What the screen passes over, which ought to add nothing; that it was too much is no problem of anyone's."""
        problems = list(self.problems)
        self._functions([info for info in self.program.main.top_level() if info not in self.known])
        self._functions(tuple(self.known))
        self._top_level(screen(self.program.main).top_level)
        self.problems = problems

    def _functions(self, functions: Sequence[FunctionInfo]) -> None:
        """Each of them, and again where it reads a KL that a later one stored."""
        for info in functions:
            if info not in self.known:
                self._function(info)
        for info in functions:
            if _reads(self.mailbox.keys() - self.known[info], info):
                self._function(info)

    def _note_too_many(self) -> None:
        reason = f"more than {MAX_ROOTS} functions that may matter: the rest was not analysed"
        self.problems.append(Problem(self.program.main.source.path, None, reason))

    @contextmanager
    def _run(self, name: str, line: int | None) -> Iterator[Interpreter]:
        """An interpreter for one function; what is too much for it is a problem of that function alone."""
        interpreter = Interpreter(self.program, self.mailbox, min(MAX_STEPS, max(LEAST_STEPS, self.steps_left)))
        try:
            yield interpreter
        except (BudgetError, TooManyNodesError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self.problems.append(Problem(self.program.main.source.path, line, f"{name} was not analysed: {reason}"))
        self.steps_left -= interpreter.steps

    def _function(self, info: FunctionInfo) -> None:
        with self._run(info.qualified, info.syntax.lineno) as interpreter:
            self._judge(interpreter, interpreter.run_root(info), info)
        self._nested(interpreter)
        self.known[info] = frozenset(self.mailbox)

    def _nested(self, interpreter: Interpreter, depth: int = 0) -> None:
        """Functions defined inside and called from elsewhere (a loss handed to a training loop)."""
        if depth == MAX_NESTED:
            return
        waiting = [item for item in interpreter.local_functions if item[0].syntax not in interpreter.called]
        for info, enclosing, receiver in waiting:
            if self.functions_run >= MAX_FUNCTIONS or (not touches_log_probabilities(info) and not _mentions_kl(info)):
                continue
            with self._run(info.qualified, info.syntax.lineno) as inner:
                inner.heap = dict(interpreter.heap)
                inner.graph = interpreter.graph
                self._judge(inner, inner.run_root(info, enclosing, receiver), info)
            self._nested(inner, depth + 1)

    def _minimises(self, statements: Sequence[ast.stmt]) -> bool:
        """The top level of a script, where the loss that a function gave is what training goes down."""
        if not self.found:
            return False
        data = self.program.main.source.data
        return any(b".backward(" in data[slice(*self.program.main.extent(node))] for node in statements)

    def _top_level(self, statements: Sequence[ast.stmt]) -> None:
        with self._run("the top level", None) as interpreter:
            self._judge(interpreter, interpreter.run_module(list(statements)), None)

    def _judge(self, interpreter: Interpreter, frame: Frame, info: FunctionInfo | None) -> None:
        self.functions_run += 1
        called = info is not None and _is_called(info, self.program.main)
        found = formulas(interpreter, targets(interpreter, frame), info, called=called)
        line = info.syntax.lineno if info is not None else sys.maxsize  # a function tells more than the top level
        self.found += [(line, formula) for formula in found]
        if info is not None and any(_is_left_open(formula) for formula in found):
            self.left_open.add(_encoded(info.name))
        if info is not None and any(
            node.bears_kl for _, value, _ in frame.returns for _, node in parts(interpreter, value)
        ):
            self.producers.add(_encoded(info.name))

    def _is_caller(self, info: FunctionInfo) -> bool:
        return (bool(self.producers or self.left_open) and self._calls_what_matters(info)) or self._picks_kl(info)

    def _calls_what_matters(self, info: FunctionInfo) -> bool:
        """A call of a function of the file that gives a KL, or leaves to its caller what becomes of one."""
        called = set(_CALLED.findall(_body(info)))
        return not called.isdisjoint(self.producers) or not called.isdisjoint(self.left_open)

    def _passes_on(self, info: FunctionInfo) -> bool:
        """A function that names no log-probability, but reads a KL that another function stored, or calls one of another file."""
        if _reads(self.mailbox.keys(), info):
            return True
        if any(self._gives_kl(name, info) for name in _called_names(info) if "kl" in name.lower()):
            return True
        return self._picks_kl(info)

    def _picks_kl(self, info: FunctionInfo) -> bool:
        """A function out of a table may be one that compares log-probabilities."""
        if not self.picks:
            return False
        tables = tables_picked_from(info.module.source.data, *info.module.extent(info.syntax))
        return any(self._holds_kl(name, info) for name in tables)

    def _holds_kl(self, table: str, info: FunctionInfo) -> bool:
        """A table of functions, some of which compare log-probabilities, that a function picks one from."""
        found = self.program.look_up(info.module, table)
        if not isinstance(found, ast.Dict):
            return False
        name, home = self.program.home_of(found, table, info.module)
        picked = [*found.values, *entries_of(name, home).values()]
        functions = [self.program.look_up(home, item.id) if isinstance(item, ast.Name) else item for item in picked]
        return any(isinstance(item, FunctionInfo) and touches_log_probabilities(item) for item in functions)

    def _gives_kl(self, name: str, info: FunctionInfo) -> bool:
        first, _, rest = name.partition(".")
        if first == "self" and info.owner is not None and rest:
            method = self.program.method(info.owner, rest)
            return method is not None and touches_log_probabilities(method)
        found = self.program.look_up(info.module, first)
        for part in rest.split(".") if rest else ():
            found = self.program.look_up(found, part) if isinstance(found, Module) else None
        return isinstance(found, FunctionInfo) and touches_log_probabilities(found)


def _body(info: FunctionInfo) -> bytes:
    start, end = info.module.extent(info.syntax)
    return info.module.source.data[start:end]


def _reads(keys: Set[str], info: FunctionInfo) -> bool:
    """The function may take something out of an object or a batch by one of the names."""
    body = _body(info) if keys else b""
    return any(mark + _encoded(key) in body for key in keys for mark in (b".", b"'", b'"'))


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _distinct(found: list[Formula]) -> list[Formula]:
    """One formula per place in the file and per use, as the most telling function shows it; in the order of the file."""
    order = {"high": 0, "medium": 1, "low": 2}
    use = {"loss": 0, "reward": 0, "metric": 1, "unknown": 2}

    def rank(formula: Formula) -> tuple[int, bool, int, bool, bool]:
        tied, own = _is_tied(formula), formula.is_own  # a caller that ties it to no setting only adds names of its own
        return use[formula.placement], not formula.attached, order[formula.confidence], not tied, not own

    best: dict[tuple[object, ...], Formula] = {}
    taken: set[tuple[object, ...]] = set()
    for formula in sorted(_without_callers(found), key=rank):
        decided = use[formula.placement] == 0
        place = (formula.span.start, formula.span.end, formula.home.start)
        key = (*place, formula.placement if decided else "", formula.detached and formula.placement == "loss")
        if not decided and place in taken:
            continue
        taken.add(place)
        best.setdefault(key, formula)
    return sorted(best.values(), key=lambda formula: (formula.span.start, formula.home.start, formula.placement))


def _without_callers(found: list[Formula]) -> list[Formula]:
    """Without what a function only reaches by calling another, where the other itself tells of it."""
    told: dict[tuple[object, ...], set[Span]] = {}
    for formula in found:
        if not formula.only_calls:
            told.setdefault((formula.home, formula.joined, formula.placement), set()).add(formula.span)

    def is_told(formula: Formula) -> bool:
        spans = told.get((formula.home, formula.joined, formula.placement))
        return formula.only_calls and spans is not None and formula.span not in spans

    return [formula for formula in found if not is_told(formula)]


def _is_tied(formula: Formula) -> bool:
    """A configuration attribute, not just a parameter, decides what it is or how much it counts."""
    return any("." in text for text in (*formula.chosen_by, *(knob.name for knob in formula.knobs)))


def _is_left_open(formula: Formula) -> bool:
    """A parameter chooses the estimator or is the coefficient."""
    return (
        formula.placement in ("loss", "reward") and bool(formula.knobs or formula.chosen_by) and not _is_tied(formula)
    )


def _is_called(info: FunctionInfo, module: Module) -> bool:
    """Some code of the file calls or hands on the function."""
    name = info.name.encode()
    start, end = module.extent(info.syntax)
    return module.source.data.find(name, 0, start) >= 0 or module.source.data.find(name, end) >= 0


def _mentions_kl(info: FunctionInfo) -> bool:
    return b"kl" in info.module.text(info.syntax).lower().encode()


def _called_names(info: FunctionInfo) -> list[str]:
    return [
        ast.unparse(node.func)
        for node in ast.walk(info.syntax)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]


__all__ = ["UnreadableError", "analyse"]
