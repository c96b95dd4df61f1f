"""Operators: arithmetic within bounds, comparisons, conditions, texts and containers joined."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from klaudit.readers.python import strings
from klaudit.readers.python.containers import add
from klaudit.readers.python.names import names_in
from klaudit.readers.python.results import Constant, Items, Opaque, Result, Table, Text, hangs_on, truth, unique
from klaudit.readers.python.scopes import Place

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator

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


def unary(evaluator: Evaluator, node: ast.UnaryOp, place: Place) -> Result:
    operand = evaluator.evaluate(node.operand, place)
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if isinstance(node.op, ast.Not):
        verdict = truth(operand)
        return Constant(not verdict, start, end) if verdict is not None else _unknown(evaluator, node, (operand,))
    if isinstance(operand, Constant) and isinstance(operand.value, int | float):
        if isinstance(node.op, ast.USub):
            return Constant(-operand.value, start, end)
        if isinstance(node.op, ast.UAdd):
            return Constant(+operand.value, start, end)
    return _unknown(evaluator, node, (operand,))


def binary(evaluator: Evaluator, node: ast.BinOp, place: Place) -> Result:
    chain = [node]  # `a + b + c ...` leans left, and people join many lines that way
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    result = evaluator.evaluate(chain[-1].left, place)
    for part in reversed(chain):
        result = _combined(evaluator, part, result, evaluator.evaluate(part.right, place))
    return result


def _combined(evaluator: Evaluator, node: ast.BinOp, left: Result, right: Result) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if isinstance(node.op, ast.Add):
        added = add(left, right, start, end)
        if added is not None:
            return added
    if isinstance(node.op, ast.BitOr) and isinstance(left, Table) and isinstance(right, Table):
        return Table((*left.pairs, *right.pairs), start, end, unique((*left.open, *right.open)))
    if isinstance(node.op, ast.Mod) and isinstance(left, Text):
        values = right.items if isinstance(right, Items) else (right,)
        named = {pair.key: pair.value for pair in right.pairs} if isinstance(right, Table) else {}
        return strings.percent_formatted(left, values, named)
    if isinstance(left, Constant) and isinstance(right, Constant):
        number = arithmetic(type(node.op), left.value, right.value)
        if number is not None:
            return Constant(number, start, end)
    return _unknown(evaluator, node, (left, right))


def boolean(evaluator: Evaluator, node: ast.BoolOp, place: Place) -> Result:
    seen: list[Result] = []
    for operand in node.values:
        result = evaluator.evaluate(operand, place)
        seen.append(result)
        verdict = truth(result)
        if verdict is None:
            return _unknown(evaluator, node, seen)
        if verdict is isinstance(node.op, ast.Or):
            return result
    return seen[-1]


def compare(evaluator: Evaluator, node: ast.Compare, place: Place) -> Result:
    operands = [evaluator.evaluate(operand, place) for operand in (node.left, *node.comparators)]
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
        verdict = compared(op, left, right)
        if verdict is None:
            return _unknown(evaluator, node, operands)
        if not verdict:
            return Constant(False, start, end)
    return Constant(True, start, end)


def conditional(evaluator: Evaluator, node: ast.IfExp, place: Place) -> Result:
    test = evaluator.evaluate(node.test, place)
    verdict = truth(test)
    if verdict is not None:
        return evaluator.evaluate(node.body if verdict else node.orelse, place)
    return _unknown(evaluator, node, (test,), names_in(node.test))


def _unknown(
    evaluator: Evaluator, node: ast.expr, parts: tuple[Result, ...] | list[Result], otherwise: tuple[str, ...] = ()
) -> Opaque:
    return Opaque(
        hangs_on(parts) or otherwise or names_in(node), evaluator.module.start(node), evaluator.module.end(node)
    )


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
