"""A formula of the value graph written as one line of mathematics."""

from __future__ import annotations

from klaudit.code.conditions import Assignment
from klaudit.code.evaluation.dual import NotEvaluableError, chosen
from klaudit.code.graph import Node, Op
from klaudit.code.roles import ROLE_NAMES

MAX_DEPTH = 40
_LONGEST = 240
_FUNCTIONS = {
    Op.EXP: "exp",
    Op.EXPM1: "expm1",
    Op.LOG: "log",
    Op.LOG1P: "log1p",
    Op.ABS: "abs",
    Op.SIGN: "sign",
    Op.SIGMOID: "sigmoid",
    Op.LOGSIGMOID: "logsigmoid",
    Op.SOFTPLUS: "softplus",
    Op.TANH: "tanh",
    Op.SOFTMAX: "softmax",
    Op.LOGSOFTMAX: "log_softmax",
    Op.LOGSUMEXP: "logsumexp",
    Op.MIN: "min",
    Op.MAX: "max",
    Op.CLAMP: "clamp",
    Op.WHERE: "where",
    Op.KLDIV: "kl_div",
    Op.DETACH: "sg",
    Op.STACK: "stack",
    Op.TOPK: "topk",
}
_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a piece of text binds


def written(node: Node, assignment: Assignment) -> str:
    """The formula with choices made as the assignment makes them: `exp(log pi_ref - log pi) - (log pi_ref - log pi) - 1`.

    sg(...) is a value without gradient; averages and sums over tokens are left out.
    """
    text = _write(node, assignment, 0)[0]
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _write(node: Node, assignment: Assignment, depth: int) -> tuple[str, int]:
    if depth > MAX_DEPTH:
        return "...", _ATOM
    op = node.op
    if op is Op.NUMBER or (op is Op.SCALAR and not node.text):
        return ("?" if node.number is None else f"{node.number:g}"), _ATOM
    if op is Op.SCALAR:
        return node.text, _ATOM
    if op is Op.MASK:
        return "mask", _ATOM
    if op is Op.ATOM:
        return (f"logits of {ROLE_NAMES[node.roles]}" if node.vocabulary else ROLE_NAMES[node.roles]), _ATOM
    if op is Op.CHOICE:
        try:
            return _write(chosen(node, assignment), assignment, depth + 1)
        except NotEvaluableError:
            return "nothing", _ATOM
    if op is Op.REDUCE and not node.args[0].vocabulary:
        return _write(node.args[0], assignment, depth + 1)
    return _operation(node, [_write(arg, assignment, depth + 1) for arg in node.args])


def _operation(node: Node, parts: list[tuple[str, int]]) -> tuple[str, int]:
    op = node.op
    if op is Op.ADD:
        left, right = parts[0][0], parts[1][0]
        if right.startswith("-"):
            return f"{left} - {right[1:]}", _SUM
        return f"{left} + {right}", _SUM
    if op is Op.NEG:
        return f"-{_bound(parts[0], _PRODUCT)}", _PRODUCT
    if op is Op.MUL:
        return f"{_bound(parts[0], _PRODUCT)} * {_bound(parts[1], _PRODUCT)}", _PRODUCT
    if op is Op.DIV:
        return f"{_bound(parts[0], _PRODUCT)} / {_bound(parts[1], _POWER)}", _PRODUCT
    if op is Op.POW:
        return f"{_bound(parts[0], _ATOM)}^{_bound(parts[1], _ATOM)}", _POWER
    if op is Op.COMPARE:
        return f"{parts[0][0]} {node.text} {parts[1][0]}", _SUM
    name = "sum over the vocabulary" if op is Op.REDUCE else _FUNCTIONS.get(op, node.text or op.name.lower())
    return f"{name}({', '.join(text for text, _ in parts)})", _ATOM


def _bound(part: tuple[str, int], needed: int) -> str:
    text, binding = part
    return text if binding >= needed else f"({text})"
