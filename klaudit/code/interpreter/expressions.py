"""Expressions to values: arithmetic, comparisons, displays.  Calls are further up."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

from klaudit.code import names
from klaudit.code.conditions import ALWAYS, NEVER, negated
from klaudit.code.graph import Node, Op, Site
from klaudit.code.interpreter.branching import COMPARISONS, Branching
from klaudit.code.interpreter.machine import MAX_ARMS, Frame
from klaudit.code.interpreter.picking import token_log_probability
from klaudit.code.modules import FunctionInfo
from klaudit.code.roles import FOREIGN, POLICY, REFERENCE
from klaudit.code.values import MAX_ITEMS, Alternatives, Closure, Literal, Mapping, Path, Sequence, Value

_BINARY = {ast.Add: Op.ADD, ast.Mult: Op.MUL, ast.Div: Op.DIV, ast.FloorDiv: Op.DIV, ast.Pow: Op.POW}

Evaluate: TypeAlias = Callable[["Expressions", ast.expr, Frame], Value]


class Expressions(Branching):
    """Evaluates every kind of expression but the call."""

    def call(self, syntax: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, frame: Frame, written: ast.AST | None = None) -> None:
        raise NotImplementedError

    def evaluate(self, syntax: ast.expr, frame: Frame) -> Value:
        """The value of an expression.  Raises BudgetError."""
        self.step()
        handler = _HANDLERS.get(type(syntax))
        if handler is None:
            return self.outside(syntax)
        self.deeper()
        try:
            return handler(self, syntax, frame)
        finally:
            self.shallower()

    def _name(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Name)
        return self.named(syntax.id, frame)

    def _attribute(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Attribute)
        return self.attribute(self.evaluate(syntax.value, frame), syntax.attr, frame, syntax)

    # --- arithmetic --------------------------------------------------------------------------------------------------------------

    def _binary(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.BinOp)
        left, right = self.evaluate(syntax.left, frame), self.evaluate(syntax.right, frame)
        if isinstance(left, Sequence) and isinstance(syntax.op, ast.Add | ast.Mult):
            return left.joined(right) if isinstance(right, Sequence) else left
        return self.arithmetic(syntax.op, left, right, self.site(syntax, frame))

    def arithmetic(self, operator: ast.operator, left: Value, right: Value, site: Site) -> Value:
        one, other = self.as_node(left, site), self.as_node(right, site)
        if isinstance(operator, ast.Sub):
            if one.op is Op.OPAQUE and one.text == "gather" and other.op is Op.LOGSUMEXP and one.args == other.args:
                return token_log_probability(self.graph, other.args[0], site)  # the picked logit, normalised
            one, other = self.in_company(one, other), self.in_company(other, one)
            return self.graph.difference(one, other, site)
        op = _BINARY.get(type(operator))
        if op is not None:
            return self.graph.make(op, (one, other), site)
        if one.is_scalar and other.is_scalar:
            return (
                self.graph.mask
                if isinstance(operator, ast.BitAnd | ast.BitOr | ast.BitXor)
                else self.graph.make(Op.MUL, (one, other), site)
            )
        if isinstance(operator, ast.BitAnd | ast.BitOr | ast.BitXor):
            return self.graph.mask
        return self.graph.make(Op.OPAQUE, (one, other), site, text=type(operator).__name__)

    def in_company(self, node: Node, other: Node) -> Node:
        """Something unnamed that a reference log-probability is subtracted from, or from it, is the policy's."""

        if node.op is not Op.ATOM or node.roles != FOREIGN or other.roles != REFERENCE or other.op is not Op.ATOM:
            return node
        if FOREIGN in (names.holder(node.text), names.holder(node.reason)) or names.is_reward(node.text):
            return node
        return self.graph.atom(POLICY, node.text, "set against the reference's log-probability", node.site)

    def _unary(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.UnaryOp)
        if isinstance(syntax.op, ast.Not):
            return self.truth(negated(self.condition(syntax.operand, frame)))
        operand = self.node(syntax.operand, frame)
        if isinstance(syntax.op, ast.USub):
            return self.graph.negative(operand, self.site(syntax, frame))
        return self.graph.mask if isinstance(syntax.op, ast.Invert) else operand

    def _compare(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Compare)
        if len(syntax.ops) != 1:
            return self.graph.mask
        if isinstance(syntax.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq):
            left, right = self.evaluate(syntax.left, frame), self.evaluate(syntax.comparators[0], frame)
            if _is_tensor(left) or _is_tensor(right):
                return self._elementwise(left, right, syntax, frame)
        return self.truth(self.comparison(syntax, frame))

    def _elementwise(self, left: Value, right: Value, syntax: ast.Compare, frame: Frame) -> Value:
        """A comparison of tensors, element by element; of foreign ones a mask."""
        one, other = self.as_node(left), self.as_node(right)
        if (one.roles | other.roles) & FOREIGN:
            return self.graph.mask
        return self.graph.make(
            Op.COMPARE, (one, other), self.site(syntax, frame), text=COMPARISONS[type(syntax.ops[0])]
        )

    def _boolean(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.BoolOp)
        values = [self.evaluate(value, frame) for value in syntax.values]
        if isinstance(syntax.op, ast.And):
            return values[-1]
        arms = [
            (self.truthiness(value, part), value) for value, part in zip(values[:-1], syntax.values[:-1], strict=True)
        ]
        return Alternatives((*arms, (ALWAYS, values[-1]))) if not isinstance(values[0], Node) else values[0]

    def _if_expression(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.IfExp)
        condition = self.condition(syntax.test, frame)
        if condition == ALWAYS:
            return self.evaluate(syntax.body, frame)
        if condition == NEVER:
            return self.evaluate(syntax.orelse, frame)
        return self.either(condition, self.evaluate(syntax.body, frame), self.evaluate(syntax.orelse, frame))

    # --- literals and displays ---------------------------------------------------------------------------------------------------

    def _constant(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Constant)
        value = syntax.value
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return Literal(value)
        if isinstance(value, int | float):
            return self.graph.number(_float(value))
        return Literal(None)

    def _sequence(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Tuple | ast.List | ast.Set)
        made = Sequence([])
        for item in syntax.elts[:MAX_ITEMS]:
            value = self.evaluate(item, frame)
            if isinstance(item, ast.Starred) and isinstance(value, Sequence):
                made = made.joined(value)
            else:
                made.items.append(value)
        return made

    def _dict(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Dict)
        entries: dict[str, Value] = {}
        rest: Path | None = None
        for key, entry in zip(syntax.keys, syntax.values, strict=True):
            value = self.evaluate(entry, frame)
            if key is None:
                entries.update(value.entries if isinstance(value, Mapping) else {})
                rest = value if isinstance(value, Path) else value.rest if isinstance(value, Mapping) else rest
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                entries[key.value] = value
            elif isinstance(key, ast.Attribute):
                entries[ast.unparse(key)] = value
        return Mapping(entries, rest=rest)

    def _comprehension(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.ListComp | ast.GeneratorExp | ast.SetComp)
        inner = self._inside_comprehension(syntax.generators, frame)
        return Sequence([self.evaluate(syntax.elt, inner)], grows=True)

    def each(self, arguments: list[ast.expr], frame: Frame) -> list[Value] | None:
        """`weights[key] * value for key, value in losses.items()` one by one; None where not all that it goes over is written out."""
        syntax = arguments[0] if len(arguments) == 1 else None
        if not isinstance(syntax, ast.GeneratorExp | ast.ListComp):
            return None
        if len(syntax.generators) > 1 or syntax.generators[0].ifs:
            return None
        source = syntax.generators[0].iter
        items = self._entries_of(source, frame) if isinstance(source, ast.Call) else self._written_out(source, frame)
        if items is None or not 1 < len(items) <= MAX_ARMS:
            return None
        found: list[Value] = []
        for item in items:
            inner = self._inside_comprehension([], frame)
            self.assign(syntax.generators[0].target, item, inner)
            found.append(self.evaluate(syntax.elt, inner))
        return found

    def _entries_of(self, syntax: ast.Call, frame: Frame) -> list[Value] | None:
        """What `table.items()`, `.values()` or `.keys()` goes over."""
        function = syntax.func
        if not isinstance(function, ast.Attribute) or function.attr not in ("items", "values", "keys") or syntax.args:
            return None
        table = self.evaluate(function.value, frame)
        if not isinstance(table, Mapping) or table.rest is not None:
            return None
        if function.attr == "items":
            return [Sequence([Literal(key), value]) for key, value in table.entries.items()]
        return list(table.entries.values()) if function.attr == "values" else [Literal(key) for key in table.entries]

    def _written_out(self, syntax: ast.expr, frame: Frame) -> list[Value] | None:
        if not isinstance(syntax, ast.Name | ast.Tuple | ast.List):
            return None
        value = self.evaluate(syntax, frame)
        return value.items if isinstance(value, Sequence) and not value.grows else None

    def _dict_comprehension(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.DictComp)
        if (copied := _copied_by(syntax)) is not None:
            source = self.evaluate(copied, frame)
            if isinstance(source, Mapping):
                return Mapping(dict(source.entries), source.name, source.rest)
            if isinstance(source, Path):
                return Mapping({}, rest=source)
        inner = self._inside_comprehension(syntax.generators, frame)
        key = self.evaluate(syntax.key, inner)
        value = self.evaluate(syntax.value, inner)
        return Mapping({key.value: value} if isinstance(key, Literal) and isinstance(key.value, str) else {"": value})

    def _inside_comprehension(self, generators: list[ast.comprehension], frame: Frame) -> Frame:
        inner = Frame(
            frame.module, frame.info, dict(frame.names), frame.enclosing, frame.receiver, frame.called_under, frame.path,
            without_gradient=frame.without_gradient, adapter_off=frame.adapter_off,
            adapter_switched=frame.adapter_switched,
        )  # fmt: skip
        for generator in generators:
            self.assign(generator.target, self.element(self.evaluate(generator.iter, inner)), inner)
        return inner

    def _lambda(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Lambda)
        return Closure(
            FunctionInfo(frame.module, syntax, "<lambda>", inside=frame.info.inside if frame.info else None),
            {**(frame.enclosing or {}), **frame.names},
            frame.receiver,
        )

    def _walrus(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.NamedExpr)
        value = self.evaluate(syntax.value, frame)
        self.assign(syntax.target, value, frame)
        return value

    def _inner(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Starred | ast.Await)
        return self.evaluate(syntax.value, frame)

    def _call(self, syntax: ast.expr, frame: Frame) -> Value:
        assert isinstance(syntax, ast.Call)
        return self.call(syntax, frame)

    def _formatted(self, syntax: ast.expr, frame: Frame) -> Value:
        return Path(f"<text:{getattr(syntax, 'lineno', 0)}>", "")


def _copied_by(syntax: ast.DictComp) -> ast.expr | None:
    """`{k: v for k, v in given.items() if ...}` keeps some of what is given."""
    match syntax:
        case ast.DictComp(
            key=ast.Name(id=key),
            value=ast.Name(id=value),
            generators=[
                ast.comprehension(
                    target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                    iter=ast.Call(func=ast.Attribute(value=source, attr="items"), args=[], keywords=[]),
                )
            ],
        ) if (key, value) == (first, second):
            return source
    return None


def _is_tensor(value: Value) -> bool:
    if isinstance(value, Path):
        return names.is_log_probability(value.name)
    return isinstance(value, Node) and not value.is_scalar


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


_HANDLERS: dict[type[ast.expr], Evaluate] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._boolean,
    ast.IfExp: Expressions._if_expression,
    ast.Constant: Expressions._constant,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dict,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dict_comprehension,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._inner,
    ast.Await: Expressions._inner,
    ast.Call: Expressions._call,
    ast.JoinedStr: Expressions._formatted,
}
