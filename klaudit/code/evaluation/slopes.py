"""Value and slope of each operation at one point, as autograd has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from klaudit.code.graph import Node, Op

Pair: TypeAlias = tuple[float, float]
Rule: TypeAlias = Callable[[list[Pair], Node], Pair]


def guarded(rule: Rule, pairs: list[Pair], node: Node) -> Pair:
    """A rule's result; infinite where it overflows, not a number where it has no value."""
    try:
        return rule(pairs, node)
    except OverflowError:
        return math.inf, math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan, math.nan


def _mul(pairs: list[Pair], node: Node) -> Pair:
    (u, du), (v, dv) = pairs
    return u * v, du * v + u * dv


def _div(pairs: list[Pair], node: Node) -> Pair:
    (u, du), (v, dv) = pairs
    return u / v, (du - u / v * dv) / v


def _pow(pairs: list[Pair], node: Node) -> Pair:
    (u, du), (n, dn) = pairs
    if dn:
        value = u**n
        return value, value * (dn * math.log(u) + n * du / u)
    if n == 0:
        return 1.0, 0.0
    value = u**n
    if isinstance(value, complex):
        raise ValueError("a root of a negative number")
    return value, 0.0 if du == 0 else n * u ** (n - 1) * du


def _exp(pairs: list[Pair], node: Node) -> Pair:
    value = math.exp(pairs[0][0])
    return value, value * pairs[0][1]


def _expm1(pairs: list[Pair], node: Node) -> Pair:
    return math.expm1(pairs[0][0]), math.exp(pairs[0][0]) * pairs[0][1]


def _sign(pairs: list[Pair], node: Node) -> Pair:
    value = pairs[0][0]
    return (math.copysign(1.0, value) if value else 0.0), 0.0


def _abs(pairs: list[Pair], node: Node) -> Pair:
    value, slope = pairs[0]
    return abs(value), slope * (math.copysign(1.0, value) if value else 0.0)


def _sigmoid_of(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def _sigmoid(pairs: list[Pair], node: Node) -> Pair:
    value = _sigmoid_of(pairs[0][0])
    return value, value * (1 - value) * pairs[0][1]


def _softplus_of(value: float) -> float:
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


def _softplus(pairs: list[Pair], node: Node) -> Pair:
    return _softplus_of(pairs[0][0]), _sigmoid_of(pairs[0][0]) * pairs[0][1]


def _logsigmoid(pairs: list[Pair], node: Node) -> Pair:
    return -_softplus_of(-pairs[0][0]), _sigmoid_of(-pairs[0][0]) * pairs[0][1]


def _tanh(pairs: list[Pair], node: Node) -> Pair:
    value = math.tanh(pairs[0][0])
    return value, (1 - value * value) * pairs[0][1]


def _where(pairs: list[Pair], node: Node) -> Pair:
    return pairs[1] if pairs[0][0] else pairs[2]


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda u, v: u < v, "<=": lambda u, v: u <= v, ">": lambda u, v: u > v, ">=": lambda u, v: u >= v,
    "==": lambda u, v: u == v, "!=": lambda u, v: u != v,
}  # fmt: skip


def _compare(pairs: list[Pair], node: Node) -> Pair:
    return float(_COMPARISONS[node.text](pairs[0][0], pairs[1][0])), 0.0


def _kl_div(pairs: list[Pair], node: Node) -> Pair:
    """torch.nn.functional.kl_div, one element: target * (log target - input)."""
    (u, du), (t, dt) = pairs
    if node.text == "log_target":
        target = math.exp(t)
        return target * (t - u), target * dt * (t - u) + target * (dt - du)
    return (t * (math.log(t) - u), dt * (math.log(t) - u) + dt - t * du) if t else (0.0, 0.0)


RULES: dict[Op, Rule] = {
    Op.MUL: _mul,
    Op.DIV: _div,
    Op.POW: _pow,
    Op.EXP: _exp,
    Op.EXPM1: _expm1,
    Op.LOG: lambda pairs, node: (math.log(pairs[0][0]), pairs[0][1] / pairs[0][0]),
    Op.LOG1P: lambda pairs, node: (math.log1p(pairs[0][0]), pairs[0][1] / (1 + pairs[0][0])),
    Op.ABS: _abs,
    Op.SIGN: _sign,
    Op.SIGMOID: _sigmoid,
    Op.SOFTPLUS: _softplus,
    Op.LOGSIGMOID: _logsigmoid,
    Op.TANH: _tanh,
    Op.WHERE: _where,
    Op.COMPARE: _compare,
    Op.KLDIV: _kl_div,
}
