"""The coefficient of a penalty as it is written between it and its sum, and the number in it."""

from __future__ import annotations

import ast

from klaudit.fixes.codemods.joint import Steps
from klaudit.fixes.codemods.text import Code


def written(code: Code, way: Steps) -> str:
    """`beta * `, `beta / n * `, empty for 1."""
    text = ""
    for node, divides in way.coefficients:
        operand = code.operand(node)
        if divides:
            text = f"{text or '1'} / {operand}"
        else:
            text = f"{text} * {operand}" if text else operand
    return f"{text} * " if text else ""


def number(way: Steps) -> float:
    """What the numbers among the coefficients make together."""
    total = 1.0
    for node, divides in way.coefficients:
        value = _value(node)
        total = total / value if divides and value else total * value
    return total


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return abs(float(value))
        case ast.UnaryOp(operand=inner):
            return _value(inner)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right) if _value(right):
            return _value(left) / _value(right)
    return 1.0
