"""Which assignment gives a name its value at a place of a function, and which names are sure to have one there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from klaudit.fixes.codemods.text import Code, Function

_MOST_STEPS = 400  # assignments followed for one question
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Binding:
    """`value` is None where the name is bound by a loop, an import, an unpacking, or anew from itself (`x += 1`)."""

    name: str
    statement: ast.stmt
    value: ast.expr | None


class Names:
    """The names of one function."""

    def __init__(self, code: Code, function: Function) -> None:
        self.code = code
        self.function = function
        self._bindings: dict[str, list[Binding]] = {}
        for statement in _statements(function):
            for binding in _bound(statement):
                self._bindings.setdefault(binding.name, []).append(binding)
        self.parameters = frozenset(_parameters(function))
        self.foreign = frozenset(
            name
            for statement in _statements(function)
            if isinstance(statement, ast.Global | ast.Nonlocal)
            for name in statement.names
        )

    def bindings(self, name: str) -> list[Binding]:
        return self._bindings.get(name, [])

    def is_own(self, name: str) -> bool:
        """It can be assigned here without taking a name of an outer scope away."""
        return (name in self.parameters or bool(self.bindings(name))) and name not in self.foreign

    def is_free(self, name: str) -> bool:
        """No code of the function uses the name."""
        return not any(
            (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.arg) and node.arg == name)
            for node in ast.walk(self.function)
        )

    def earlier(self, name: str, at: ast.stmt) -> list[Binding]:
        """Bindings written before a statement, in order."""
        start = self.code.extent(at)[0]
        return [each for each in self.bindings(name) if self.code.extent(each.statement)[0] < start]

    def definition(self, name: str, at: ast.stmt) -> Binding | None:
        """The one assignment that gives the name its value at a statement; None where none does, or more than one may."""
        earlier = self.earlier(name, at)
        last = earlier[-1] if earlier else None
        return last if last is not None and self.encloses(last.statement, at) else None

    def alternatives(self, name: str, at: ast.stmt) -> list[Binding] | None:
        """The assignments of which one gives a name its value at a statement, one for each branch; None where not all are seen."""
        for block, before in self._blocks_around(at):
            found = self._last(name, block, before)
            if found is None or found:
                return found
        return None

    def _blocks_around(self, at: ast.stmt) -> Iterator[tuple[list[ast.stmt], int]]:
        """The blocks that a statement stands in, from the inside out, each with the place in it."""
        while at is not self.function:
            block = self.code.block(at)
            yield block, block.index(at)
            parent = self.code.parents[at]
            if not isinstance(parent, ast.stmt):
                return
            at = parent

    def _last(self, name: str, block: list[ast.stmt], stop: int) -> list[Binding] | None:
        """The last assignments in the first statements of a block; empty where there are none there."""
        for place in range(stop - 1, -1, -1):
            statement = block[place]
            if not any(each.statement in ast.walk(statement) for each in self.bindings(name)):
                continue
            own = [each for each in self.bindings(name) if each.statement is statement]
            if own:
                return own if own[-1].value is not None else None
            if not isinstance(statement, ast.If):
                return None
            found: list[Binding] = []
            for branch in (statement.body, statement.orelse):
                if _leaves(branch):
                    continue
                inner = self._last(name, branch, len(branch))
                inner = self._last(name, block, place) if inner == [] else inner
                if not inner:
                    return None
                found += inner
            return found
        return []

    def encloses(self, statement: ast.stmt, at: ast.stmt) -> bool:
        """Whether a statement has always run when `at` is reached: it stands above it in a block around it."""
        block = self.code.block(statement)
        return at in block or any(above in block for above in self.code.ancestors(at) if isinstance(above, ast.stmt))

    def reaches(self, expression: ast.expr, at: ast.stmt, wanted: Callable[[ast.AST], bool]) -> bool:
        """Whether the value of an expression is made from something wanted, over any assignments before it."""
        waiting: list[tuple[ast.expr, ast.stmt]] = [(expression, at)]
        seen: set[Binding] = set()
        while waiting:
            node, place = waiting.pop()
            for part in ast.walk(node):
                if wanted(part):
                    return True
                if isinstance(part, ast.Name) and len(seen) < _MOST_STEPS:
                    for binding in self.earlier(part.id, place):
                        if binding not in seen:
                            seen.add(binding)
                            waiting += [(value, binding.statement) for value in _values(binding)]
        return False

    def given_at(self, at: ast.stmt, guards: frozenset[str]) -> frozenset[str]:
        """Names that have a value whenever `at` is reached and the tests in `guards` hold."""
        body = self.function.body
        given = set(self.parameters)
        if isinstance(body, list):
            self._give(body, at, guards, given)
        return frozenset(given)

    def _give(self, block: list[ast.stmt], at: ast.stmt, guards: frozenset[str], given: set[str]) -> None:
        for statement in block:
            if statement is at:
                return
            if any(node is at for node in ast.walk(statement)):
                given |= {each.name for each in _bound(statement)}
                for inner in _blocks(statement):
                    if any(node is at for child in inner for node in ast.walk(child)):
                        self._give(inner, at, guards, given)
                return
            given |= self._surely(statement, guards)

    def _surely(self, statement: ast.stmt, guards: frozenset[str]) -> set[str]:
        if isinstance(statement, ast.If):
            if ast.unparse(statement.test) in guards:
                return self._of_block(statement.body, guards)
            ways = [block for block in (statement.body, statement.orelse) if not _leaves(block)]
            return set.intersection(*(self._of_block(block, guards) for block in ways)) if ways else set()
        if isinstance(statement, ast.With | ast.AsyncWith):
            return {each.name for each in _bound(statement)} | self._of_block(statement.body, guards)
        if isinstance(statement, ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match):
            return set()
        return {each.name for each in _bound(statement)}

    def _of_block(self, block: list[ast.stmt], guards: frozenset[str]) -> set[str]:
        return {name for statement in block for name in self._surely(statement, guards)}

    def changes_between(self, name: str, one: ast.stmt, other: ast.stmt) -> bool:
        """Whether the name is given another value between two statements (the first of them included)."""
        first, last = sorted((one, other), key=lambda statement: self.code.extent(statement)[0])
        start, stop = self.code.extent(first)[0], self.code.extent(last)[0]
        return any(start <= self.code.extent(each.statement)[0] < stop for each in self.bindings(name))

    def reads(self, name: str) -> Iterator[ast.Name]:
        """Every use of the value of a name, in functions inside this one too."""
        for node in ast.walk(self.function):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                yield node


def free_names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def _statements(function: Function) -> Iterator[ast.stmt]:
    """The statements of a function in order, without those of functions and classes inside it."""
    body = function.body
    waiting: list[ast.stmt] = list(reversed(body)) if isinstance(body, list) else []
    while waiting:
        statement = waiting.pop()
        yield statement
        if not isinstance(statement, _SCOPES):
            waiting.extend(child for block in reversed(_blocks(statement)) for child in reversed(block))


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", [])]
    blocks += [case.body for case in getattr(statement, "cases", [])]
    return [block for block in blocks if isinstance(block, list) and block]


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVES)


def _values(binding: Binding) -> list[ast.expr]:
    if binding.value is not None:
        return [binding.value]
    return [child for child in ast.iter_child_nodes(binding.statement) if isinstance(child, ast.expr)]


def _bound(statement: ast.stmt) -> Iterator[Binding]:
    """What a statement itself binds, without the statements inside it."""
    if isinstance(statement, _SCOPES):
        yield Binding(getattr(statement, "name", ""), statement, None)
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield Binding(alias.asname or alias.name.partition(".")[0], statement, None)
        return
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        for target in statement.targets:
            assert isinstance(target, ast.Name)
            yield Binding(target.id, statement, statement.value)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        if statement.value is not None:
            yield Binding(statement.target.id, statement, statement.value)
    else:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                continue
            for node in ast.walk(child):
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    yield Binding(node.id, statement, None)
    for child in ast.iter_child_nodes(statement):
        for node in ast.walk(child) if isinstance(child, ast.expr) else ():
            if isinstance(node, ast.NamedExpr) and isinstance(statement, ast.Assign | ast.AnnAssign):
                yield Binding(node.target.id, statement, None)


def _parameters(function: Function) -> Iterator[str]:
    if isinstance(function, ast.Module):
        return
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if each is not None:
            yield each.arg
