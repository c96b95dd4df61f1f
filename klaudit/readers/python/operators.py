"""Operators on known values: arithmetic within bounds, comparisons."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from klaudit.readers.python.results import Constant, Items, Result, Table, Text

MAX_NUMBER = 1 << 128

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def arithmetic(kind: type[ast.operator], left: object, right: object) -> int | float | None:
    """The result of an operator on two numbers, None where it is not one we follow or would not fit."""
    function = _ARITHMETIC.get(kind)
    if function is None or not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if kind is ast.Pow and (abs(right) > 1000 or abs(left) > 1e6):
        return None
    try:
        number = function(left, right)
    except (ArithmeticError, ValueError):
        return None
    if isinstance(number, float):
        return number
    return number if isinstance(number, int) and abs(number) < MAX_NUMBER else None  # a root of a negative is complex


def compared(op: ast.cmpop, left: Result, right: Result) -> bool | None:
    """Whether a comparison holds, None where that cannot be known."""
    plain_left, plain_right = _comparable(left), _comparable(right)
    if isinstance(op, ast.In | ast.NotIn):
        if plain_left is None or not isinstance(right, Items | Table) or right.open:
            return None
        members = right.items if isinstance(right, Items) else ()
        others = [_comparable(item) for item in members]
        if any(other is None for other in others):
            return None
        keys = [(pair.key,) for pair in right.pairs] if isinstance(right, Table) else others
        return (plain_left in keys) is isinstance(op, ast.In)
    function = _COMPARISONS.get(type(op))
    if function is None or plain_left is None or plain_right is None:
        return None
    singletons = (
        plain_left[0] is None or isinstance(plain_left[0], bool),
        plain_right[0] is None or isinstance(plain_right[0], bool),
    )
    if isinstance(op, (ast.Is, ast.IsNot)) and not any(singletons):
        return None  # whether equal numbers and texts are one object is up to the interpreter
    try:
        return bool(function(plain_left[0], plain_right[0]))
    except TypeError:
        return None


def _comparable(result: Result) -> tuple[object] | None:
    if isinstance(result, Constant):
        return (result.value,)
    if isinstance(result, Text) and result.known is not None:
        return (result.known,)
    return None
