"""The sum in which a penalty joins the loss: which side it is, what multiplies and averages it, and the sum without it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from klaudit.code import names as words
from klaudit.code.result import Formula
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit

Test: TypeAlias = Callable[[ast.AST], bool]
Holds: TypeAlias = Callable[[ast.expr, ast.stmt], bool]

_OPERATOR = re.compile(rb"[\s\\)]*(\+=|-=|\+|-)[\s\\]*")
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


@dataclass(frozen=True, slots=True)
class Steps:
    """What stands between a sum and a value in it, from the outside in.

    `around` are averages, masks and weights, with `_` for the value; `coefficients` the numbers, each with whether it divides.
    """

    sign: int
    around: tuple[str, ...]
    coefficients: tuple[tuple[ast.expr, bool], ...]
    core: ast.expr
    at: ast.stmt


@dataclass(frozen=True, slots=True)
class Joint:
    """`penalty` and `rest` are the operands; `sign` is that of the penalty in the sum, `is_first` whether it stands first in it."""

    node: ast.BinOp | ast.AugAssign
    statement: ast.stmt
    penalty: ast.expr
    rest: ast.expr
    sign: int
    is_first: bool

    @classmethod
    def of(cls, code: Code, names: Names, formula: Formula) -> Joint:
        """Raises CannotMendError where the penalty joins nothing in a form that is known."""
        node = code.at(formula.joined)
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Add | ast.Sub):
            raise CannotMendError(f"the penalty does not join the {formula.placement} in a plain sum")
        statement = code.statement(node)
        sign = 1 if isinstance(node.op, ast.Add) else -1
        if isinstance(node, ast.AugAssign):
            target = ast.parse(code.text(node.target), mode="eval").body
            return cls(node, statement, node.value, ast.copy_location(target, node.target), sign, is_first=False)
        is_penalty = leads_to(code, formula)
        while True:
            sides = [names.reaches(side, statement, is_penalty) for side in (node.left, node.right)]
            if sides[0] == sides[1]:
                raise CannotMendError("both sides of the sum hold the penalty, or neither is seen to")
            inner, rest = (node.left, node.right) if sides[0] else (node.right, node.left)
            if not (sides[0] and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add | ast.Sub)):
                break
            node = inner  # of a longer sum the part that the penalty itself is added to
        sign = -1 if sides[1] and isinstance(node.op, ast.Sub) else 1
        return cls(node, statement, inner, rest, sign, is_first=sides[0])

    @property
    def is_moved_onto_itself(self) -> bool:
        """Without the penalty the statement says `x = x`."""
        if isinstance(self.node, ast.AugAssign):
            return True
        match self.statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return value is self.node and isinstance(self.rest, ast.Name) and self.rest.id == name
        return False

    def without_penalty(self, code: Code) -> Edit:
        """Raises CannotMendError where a comment would go, CannotEditError where the statement shares its line."""
        if self.is_moved_onto_itself:
            return code.remove(self.statement)
        assert isinstance(self.node, ast.BinOp)
        start, end = code.extent(self.node)
        match = _OPERATOR.match(code.data, code.extent(self.node.left)[1])
        if match is None:
            raise CannotMendError("a comment stands inside the sum")
        if self.is_first:
            return code.edit(start, match.end(), "-" if match.group(1) == b"-" else "")
        if not isinstance(self.node.left, _ATOMS) or (outer := self._enclosing(code)) is None:
            return code.edit(_closed(match), end, "")
        return code.edit(*outer, code.text(self.node.left))

    def _enclosing(self, code: Code) -> tuple[int, int] | None:
        """Parentheses around the sum that a single name needs no longer, behind a minus sign."""
        parent = code.parents[self.node]
        (start, end), first = code.extent(self.node), code.extent(self.left)[0]
        if not isinstance(parent, ast.UnaryOp) or first != start or b"#" in code.data[start:end]:
            return None
        outer_start, outer_end = code.extent(parent)
        is_bare = code.data[outer_start + 1 : start].strip() == b"(" and code.data[end:outer_end].strip() == b")"
        return (outer_start + 1, outer_end) if is_bare else None

    @property
    def left(self) -> ast.expr:
        return self.node.target if isinstance(self.node, ast.AugAssign) else self.node.left

    def with_other_sign(self, code: Code) -> Edit:
        """Raises CannotMendError where the penalty stands first."""
        match = _OPERATOR.match(code.data, code.extent(self.left)[1])
        if match is None or self.is_first:
            raise CannotMendError("the penalty stands first in the sum, and its sign is made elsewhere")
        other = match.group(1).translate(bytes.maketrans(b"+-", b"-+")).decode()
        return code.edit(*match.span(1), other)


def _closed(match: re.Match[bytes]) -> int:
    """Behind the last parenthesis that the left side closes with."""
    before = match.group()[: match.start(1) - match.start()]
    return match.start() + len(before.rstrip(b" \t\r\n\\"))


def leads_to(code: Code, formula: Formula) -> Test:
    """A test for nodes: the formula, or the call that leads to it."""
    spans = (formula.span, formula.home, *([formula.call[0]] if formula.call is not None else []))
    places = {id(node) for span in spans if (node := code.at(span)) is not None}
    return lambda node: id(node) in places


def steps(names: Names, expression: ast.expr, at: ast.stmt, holds: Holds, is_core: Test) -> Steps:
    """From an operand of the sum inwards, over assignments, to the value for which `is_core` holds or that goes no further.

    `holds(expression, statement)` says which side of a product or which argument has the value in it.  Raises CannotMendError where an
    assignment on the way is one of several.
    """
    sign, around, coefficients = 1, [], []
    while not is_core(expression):
        match expression:
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                sign, expression = -sign, inner
            case ast.Name(id=name):
                binding = names.definition(name, at)
                if binding is None or binding.value is None:
                    break
                expression, at = binding.value, binding.statement
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
                sides = [holds(left, at), holds(right, at)]
                if sides == [True, True] or (isinstance(op, ast.Div) and sides[1]) or sides == [False, False]:
                    break
                inner, other = (left, right) if sides[0] else (right, left)
                while isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.USub):
                    sign, other = -sign, other.operand
                if _is_weight(other):
                    coefficients.append((other, isinstance(op, ast.Div)))
                else:
                    around.append(f"_ {'/' if isinstance(op, ast.Div) else '*'} {ast.unparse(other)}")
                expression = inner
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                sides = [holds(left, at), holds(right, at)]
                if sides[0] == sides[1]:
                    break
                sign = -sign if sides[1] and isinstance(op, ast.Sub) else sign
                expression = left if sides[0] else right
            case ast.Call(func=ast.Attribute(value=value, attr="mean" | "sum")) if holds(value, at):
                around.append(_with_hole(expression, value))
                expression = value
            case ast.Call(func=function) if words.is_aggregation(ast.unparse(function).rpartition(".")[2]):
                given = [
                    each for each in (*expression.args, *(k.value for k in expression.keywords)) if holds(each, at)
                ]
                if len(given) != 1:
                    break
                around.append(_with_hole(expression, given[0]))
                expression = given[0]
            case _:
                break
    return Steps(sign, tuple(around), tuple(coefficients), expression, at)


def _is_weight(node: ast.expr) -> bool:
    """A number or a coefficient by name; masks and tensors are not."""
    if isinstance(node, ast.UnaryOp):
        return _is_weight(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_weight(node.left) and _is_weight(node.right)
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and words.is_coefficient(_dotted(node))
    )


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return f"{_dotted(value)}.{key}"
        case ast.Name() | ast.Attribute():
            return ast.unparse(node)
    return ""


def _with_hole(call: ast.Call, value: ast.expr) -> str:
    return ast.unparse(call).replace(ast.unparse(value), "_", 1).replace("(_).", "_.")
