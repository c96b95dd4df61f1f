"""Tests of branches under the settings of a launch: `config.actor.strategy in ("fsdp", "fsdp2")` is true, false or open."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct

from klaudit.model import Unknown, Value

Ask = Callable[
    [tuple[str, ...]], Value
]  # the value of a setting by the parts of its path; Unknown where nothing says it

_OPEN = Unknown(())
_MAX_DEPTH = 12


class Guard(Struct, frozen=True, eq=False):
    """A test with the branch it must take, and the definition around it."""

    test: ast.expr
    holds: bool
    scope: ast.stmt | None


def allows(guards: tuple[Guard, ...], ask: Ask) -> bool | None:
    """Whether all guards are passed; None where that is open."""
    outcomes = [_truth(guard, ask) for guard in guards]
    return False if False in outcomes else None if None in outcomes else True


def _truth(guard: Guard, ask: Ask) -> bool | None:
    truth = _test(guard.test, _assigned(guard.scope), ask, 0)
    return truth if truth is None or guard.holds else not truth


@lru_cache(maxsize=64)
def _assigned(scope: ast.stmt | None) -> Mapping[str, ast.expr]:
    """What names inside a definition are assigned, where that is one expression."""
    found: dict[str, ast.expr | None] = {}
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            found[name] = None if name in found else node.value
    return {name: value for name, value in found.items() if value is not None}


def _test(test: ast.expr, names: Mapping[str, ast.expr], ask: Ask, depth: int) -> bool | None:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(test, ast.BoolOp):
        parts = [_test(part, names, ask, depth + 1) for part in test.values]
        decisive = isinstance(test.op, ast.Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _test(test.operand, names, ask, depth + 1)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(test, names, ask, depth)
    if (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING":
        return False  # for type checkers, never when the program runs
    value = _value(test, names, ask, depth + 1)
    return None if isinstance(value, Unknown | list | dict) else bool(value)


def _comparison(test: ast.Compare, names: Mapping[str, ast.expr], ask: Ask, depth: int) -> bool | None:
    left = _value(test.left, names, ask, depth + 1)
    if isinstance(left, Unknown | list | dict):
        return None
    operator, right = test.ops[0], test.comparators[0]
    if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
        among = [_value(item, names, ask, depth + 1) for item in right.elts]
        if any(isinstance(item, Unknown) for item in among):
            return None
        return (left in among) == isinstance(operator, ast.In)
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        other = _value(right, names, ask, depth + 1)
        if isinstance(other, Unknown):
            return None
        return (left == other) == isinstance(operator, ast.Eq | ast.Is)
    return None


def _value(expression: ast.expr, names: Mapping[str, ast.expr], ask: Ask, depth: int) -> Value:
    if depth > _MAX_DEPTH:
        return _OPEN
    if isinstance(expression, ast.Constant):
        constant = expression.value
        return constant if constant is None or isinstance(constant, bool | int | float | str) else _OPEN
    if isinstance(expression, ast.Name):
        if expression.id not in names:
            return _OPEN
        return _value(names[expression.id], names, ask, depth + 1)
    if isinstance(expression, ast.Call):
        return _called(expression, names, ask, depth)
    path = _path(expression, names, depth)
    return ask(path) if path else _OPEN


def _called(call: ast.Call, names: Mapping[str, ast.expr], ask: Ask, depth: int) -> Value:
    """`config.get("key", default)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "get" or not 1 <= len(call.args) <= 2:
        return _OPEN
    owner, key = _path(call.func.value, names, depth), call.args[0]
    if not owner or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return _OPEN
    return ask((*owner, key.value))


def _path(expression: ast.expr, names: Mapping[str, ast.expr], depth: int) -> tuple[str, ...]:
    """`self.config.actor.strategy`, `cfg["actor"].strategy` as parts; empty for anything else."""
    parts: list[str] = []
    while depth <= _MAX_DEPTH:
        depth += 1
        if isinstance(expression, ast.Attribute):
            parts.append(expression.attr)
            expression = expression.value
        elif isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
            parts.append(str(expression.slice.value))
            expression = expression.value
        elif isinstance(expression, ast.Name):
            if expression.id in names:
                expression = names[expression.id]
                continue
            parts.append(expression.id)
            return tuple(reversed(parts))
        else:
            break
    return ()
