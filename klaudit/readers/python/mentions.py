"""Texts, and lists of them, that a module only looks for: what a test expects in a script, or a check demands of one, starts nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from klaudit.readers.python.names import callee_name

_MOST_STEPS = 200  # from use to use, for one value
_MOST_WORK = 400_000  # steps upwards in one module: past that everything may be used
_LOOKING = frozenset(
    {  # methods and functions that look for their first argument
        "count", "endswith", "escape", "find", "findall", "finditer", "fullmatch", "index", "isdisjoint", "issubset", "issuperset",
        "match", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rpartition", "rsplit", "search", "split",
        "startswith", "sub", "subn",
    }
)  # fmt: skip
_SAME_CONTENT = frozenset({"enumerate", "frozenset", "iter", "list", "reversed", "set", "sorted", "str", "tuple"})
_COUNTING = frozenset({"all", "any", "bool", "len"})
_TELLING = frozenset(
    {"critical", "debug", "error", "exception", "exit", "fail", "info", "print", "skip", "warn", "warning", "xfail"}
)
_COMPLAINTS = frozenset(
    {"absent", "errors", "failed", "failures", "issues", "messages", "mismatches", "missing", "problems", "violations"}
)
_PARTS = (
    ast.BinOp,
    ast.BoolOp,
    ast.FormattedValue,
    ast.IfExp,
    ast.JoinedStr,
    ast.List,
    ast.Set,
    ast.Starred,
    ast.Tuple,
)

_Step: TypeAlias = "Sequence[ast.AST]"  # the expressions that a value goes on in: none where it ends
_LOOKED_FOR: _Step = []  # it ends there, and that is what it is for
_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


class Mentions:
    """The uses of values in one module.  The tree is looked through when it is first asked about."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents: dict[int, ast.AST] = {}
        self._loads: dict[str, list[ast.Name]] = {}
        self._functions: dict[str, list[_Function]] = {}
        self._work = 0

    def only_looked_for(self, node: ast.expr) -> bool:
        """Whether all that the module does with a value is to look for it, to compare it and to complain of its absence.

        False where it does nothing with it at all, and where anything else may be done with it.
        """
        if not self._parents:
            self._look_through()
        seen: set[int] = set()
        pending: list[ast.AST] = [node]
        is_looked_for = False
        while pending:
            use = pending.pop()
            if id(use) in seen:
                continue
            seen.add(id(use))
            step = self._after(use) if len(seen) < _MOST_STEPS else None
            if step is None:
                return False
            is_looked_for |= step is _LOOKED_FOR
            pending += step
        return is_looked_for and self._work <= _MOST_WORK

    def _look_through(self) -> None:
        for parent in ast.walk(self._tree):
            for child in ast.iter_child_nodes(parent):
                self._parents[id(child)] = parent
            if isinstance(parent, ast.Name) and isinstance(parent.ctx, ast.Load):
                self._loads.setdefault(parent.id, []).append(parent)
            elif isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.setdefault(parent.name, []).append(parent)

    def _after(self, node: ast.AST) -> _Step | None:
        """Where a value goes from here, None if nobody knows."""
        parent = self._parents.get(id(node))
        match parent:
            case ast.Compare():
                return _LOOKED_FOR
            case ast.Assert() | ast.Raise():
                return ()
            case ast.If() | ast.While() if node is parent.test:
                return ()
            case ast.UnaryOp(op=ast.Not()):
                return ()
            case ast.IfExp() if node is parent.test:
                return ()
            case ast.Call() if node is not parent.func:
                return self._after_call(node, parent)
            case ast.keyword():
                call = self._parents.get(id(parent))
                return self._after_call(parent, call) if isinstance(call, ast.Call) else None
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return self._uses(name, self._home(parent)) or None
            case ast.For(target=ast.Name(id=name)) | ast.AsyncFor(target=ast.Name(id=name)) if node is parent.iter:
                return self._uses(name, parent) or None
            case ast.comprehension(target=ast.Name(id=name)) if node is parent.iter:
                return self._inside(name, parent)
            case ast.comprehension() if node is not parent.iter:
                return ()
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return (parent,)
            case _:
                return (parent,) if isinstance(parent, _PARTS) else None

    def _after_call(self, node: ast.AST, call: ast.Call) -> _Step | None:
        name = callee_name(call.func)
        is_first = bool(call.args) and call.args[0] is node
        if name.startswith("assert") or (name in _LOOKING and is_first):
            return _LOOKED_FOR
        if name in _COUNTING or name in _TELLING:
            return ()
        if name in _SAME_CONTENT or self._is_raised(call):
            return (call,)
        if isinstance(call.func, ast.Attribute):
            holder = call.func.value
            if name == "join":
                return (call,)
            if name in ("append", "extend", "add") and isinstance(holder, ast.Name) and holder.id in _COMPLAINTS:
                return ()
            return self._parametrized(node, call) if name == "parametrize" else None
        functions = self._functions.get(name, ())
        if len(functions) != 1:
            return None
        parameter = _parameter(node, call, functions[0])
        return None if parameter is None else self._uses(parameter, functions[0]) or None

    def _is_raised(self, call: ast.Call) -> bool:
        return isinstance(self._parents.get(id(call)), ast.Raise)

    def _parametrized(self, node: ast.AST, call: ast.Call) -> _Step | None:
        """`@pytest.mark.parametrize("expected", [..])` above a function."""
        function = self._parents.get(id(call))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and len(call.args) > 1 and call.args[1] is node:
            match call.args[0]:
                case ast.Constant(value=str(name)) if name.isidentifier():
                    return self._uses(name, function) or None
        return None

    def _inside(self, name: str, generator: ast.comprehension) -> _Step | None:
        comprehension = self._parents.get(id(generator))
        return None if comprehension is None else self._uses(name, comprehension) or None

    def _uses(self, name: str, holder: ast.AST) -> list[ast.AST]:
        """Where a name is read inside a statement, function or module."""
        loads = self._loads.get(name, ())
        self._work += len(loads)
        return [use for use in loads if holder in self._above(use)] if self._work <= _MOST_WORK else []

    def _home(self, node: ast.AST) -> ast.AST:
        """The function around a statement, or the module."""
        homes = (each for each in self._above(node) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        return next(homes, self._tree)

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while (above := self._parents.get(id(node))) is not None and self._work <= _MOST_WORK:
            self._work += 1
            yield above
            node = above


def _parameter(node: ast.AST, call: ast.Call, function: _Function) -> str | None:
    """The parameter that an argument is given for."""
    if isinstance(node, ast.keyword):
        return node.arg
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    names: Iterable[ast.arg] = (*function.args.posonlyargs, *function.args.args)
    return next((name.arg for argument, name in zip(call.args, names, strict=False) if argument is node), None)
