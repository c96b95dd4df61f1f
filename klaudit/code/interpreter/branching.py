"""Conditions: what an expression's truth hangs on, and strings that decide between branches."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from operator import ge, gt, le, lt

from klaudit.code import names
from klaudit.code.conditions import (
    ALWAYS,
    NEVER,
    TEXT_METHODS,
    Affix,
    Condition,
    Constant,
    OneOf,
    Subject,
    Truth,
    both,
    either,
    is_large,
    known,
    negated,
)  # fmt: skip
from klaudit.code.graph import Node, Op
from klaudit.code.interpreter.access import Access
from klaudit.code.interpreter.machine import Frame
from klaudit.code.values import Alternatives, Literal, Mapping, Operation, Path, Sequence, Value

COMPARISONS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


_ORDER: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}

_MAKES_TENSORS = re.compile(r"(?:torch|jnp|np)\.\w+\(")  # what these functions give is a tensor


class Branching(Access):
    """Turns tests into conditions."""

    def truth(self, condition: Condition) -> Value:
        if condition in (ALWAYS, NEVER):
            return Literal(condition == ALWAYS)
        return Alternatives(((condition, Literal(True)), (ALWAYS, Literal(False))))

    def condition(self, syntax: ast.expr, frame: Frame) -> Condition:
        """What an expression's truth hangs on; the expression itself, at its place, where that is too much to be told."""
        found = self._condition(syntax, frame)
        if not is_large(found):
            return found
        return Truth(f"{ast.unparse(syntax)}@{syntax.lineno}:{syntax.col_offset}")

    def _condition(self, syntax: ast.expr, frame: Frame) -> Condition:
        if isinstance(syntax, ast.BoolOp):
            parts = [self.condition(value, frame) for value in syntax.values]
            return both(parts) if isinstance(syntax.op, ast.And) else either(parts)
        if isinstance(syntax, ast.UnaryOp) and isinstance(syntax.op, ast.Not):
            return negated(self.condition(syntax.operand, frame))
        if isinstance(syntax, ast.Compare) and len(syntax.ops) == 1:
            return self.comparison(syntax, frame)
        return self.truthiness(self.evaluate(syntax, frame), syntax)

    def truthiness(self, value: Value, syntax: ast.expr) -> Condition:
        if isinstance(value, Literal):
            return known(bool(value.value))
        if isinstance(value, Alternatives):
            return self.distributed(value, lambda arm: self.truthiness(arm, syntax))
        if isinstance(value, Path):
            return Truth(value.text)
        if isinstance(value, Node):
            if value.op is Op.NUMBER:
                return known(bool(value.number))
            return Truth(value.text if value.op is Op.SCALAR else ast.unparse(syntax))
        if isinstance(value, Sequence | Mapping):
            return Truth(ast.unparse(syntax))
        return ALWAYS

    def distributed(self, value: Alternatives, ask: Callable[[Value], Condition]) -> Condition:
        """A question about alternatives: true where an arm holds for which it is true, and no arm before it holds."""
        earlier: list[Condition] = []
        true: list[Condition] = []
        for condition, arm in value.arms:
            true.append(both((condition, ask(arm), *earlier)))
            earlier.append(negated(condition))
        return either(true)

    def comparison(self, syntax: ast.Compare, frame: Frame) -> Condition:
        left = self.evaluate(syntax.left, frame)
        right = self.evaluate(syntax.comparators[0], frame)
        operator = COMPARISONS[type(syntax.ops[0])]
        if operator in ("!=", "is not", "not in"):
            return negated(
                self.compared(
                    left, right, operator.replace("is not", "is").replace("not in", "in").replace("!=", "=="), syntax
                )
            )
        return self.compared(left, right, operator, syntax)

    def compared(self, left: Value, right: Value, operator: str, syntax: ast.Compare) -> Condition:
        if isinstance(left, Alternatives):
            return self.distributed(left, lambda arm: self.compared(arm, right, operator, syntax))
        if operator == "in" and isinstance(left, Literal) and isinstance(right, Path):
            return Truth(ast.unparse(syntax))
        if operator in _ORDER and (numbers := _numbers(left, right)) is not None:
            return known(_ORDER[operator](*numbers))
        values = self._constants(right, membership=operator == "in")
        if operator in ("==", "is", "in") and values is not None:
            return self._equals(left, values, ast.unparse(syntax))
        if operator == "==" and (mirrored := self._constants(left, membership=False)) is not None:
            return self._equals(right, mirrored, ast.unparse(syntax))
        return Truth(ast.unparse(syntax))

    def equality(self, left: Value, right: Value, text: str) -> Condition:
        """Whether a value equals another, `text` standing for a test that is not understood."""
        if isinstance(left, Alternatives):
            return self.distributed(left, lambda arm: self.equality(arm, right, text))
        values = self._constants(right, membership=False)
        return Truth(text) if values is None else self._equals(left, values, text)

    def _equals(self, left: Value, values: frozenset[Constant], text: str) -> Condition:
        if isinstance(left, Path):
            if left.text == "__name__" and values == {"__main__"}:
                return ALWAYS  # a script is read as it is started
            if values == {None} and (names.is_log_probability(left.name) or _MAKES_TENSORS.match(left.text)):
                return NEVER  # without it there is no penalty to speak of
            return OneOf(left.as_subject, values)
        if isinstance(left, Literal):
            return known(left.value in values)
        if isinstance(left, Node):
            if values == {None}:
                return NEVER
            if left.op is Op.NUMBER:
                return known(left.number in values)
            if left.op is Op.SCALAR and left.text:
                return OneOf(Subject(left.text), values)
        elif values == {None} and not isinstance(left, Operation):  # `torch.version.hip` may be nothing
            return NEVER
        return Truth(text)

    def _constants(self, value: Value, *, membership: bool) -> frozenset[Constant] | None:
        if membership:
            if not isinstance(value, Sequence):
                return None
            found = [self._constants(item, membership=False) for item in value.items]
            return frozenset().union(*(item for item in found if item)) if found and None not in found else None
        if isinstance(value, Literal):
            return frozenset({value.value})
        if isinstance(value, Node) and value.op is Op.NUMBER:
            return frozenset({value.number})
        return None

    def text_method(self, owner: Path | Literal, method: str, arguments: list[Value]) -> Value | None:
        """A string method of a setting: a test, or a setting derived from it."""
        constants = [argument.value for argument in arguments if isinstance(argument, Literal)]
        if len(constants) != len(arguments):
            return None
        if isinstance(owner, Literal):
            if isinstance(owner.value, str) and (method in TEXT_METHODS or method in ("endswith", "startswith")):
                try:
                    return Literal(getattr(owner.value, method)(*constants))
                except TypeError:
                    return None
            return None
        if method in ("endswith", "startswith") and len(constants) == 1 and isinstance(constants[0], str):
            return self.truth(Affix(owner.as_subject, method == "endswith", constants[0]))
        if method in TEXT_METHODS and names.is_log_probability(owner.name) is False:
            return Path(
                owner.text, owner.name, default=owner.default, subject=owner.as_subject.then(method, tuple(constants))
            )
        return None


def _numbers(left: Value, right: Value) -> tuple[float, float] | None:
    if isinstance(left, Node) and isinstance(right, Node) and left.op is right.op is Op.NUMBER:
        return left.number or 0.0, right.number or 0.0
    return None
