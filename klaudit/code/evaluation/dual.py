"""Evaluation of the value graph with dual numbers: at every point the value, and its slope along log pi, as autograd would see it.

Two settings.  On *sampled tokens* a point is one token: log pi = x, log pi_ref = x - d, log pi_old = x - delta (nats), and the slope is
taken along log pi.  Over the *vocabulary* the points are the entries of one distribution, softmaxes and reductions go over them, and the
slope is taken along a direction of the policy's logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from klaudit.code import names
from klaudit.code.conditions import Assignment
from klaudit.code.evaluation.slopes import RULES, guarded
from klaudit.code.graph import OVER_VOCABULARY, Node, Op
from klaudit.code.roles import OLD, POLICY, REFERENCE

INFINITE = math.inf


class NotEvaluableError(ValueError):
    """A formula holds something that has no value here: a foreign tensor, a call that was not followed."""


class UndecidedError(NotEvaluableError):
    """A formula is one of several, and nothing says which."""


class Tokens(Struct, frozen=True):
    """Sampled tokens: log pi, d and delta of each; `knob` stands for every setting whose number is not known."""

    x: tuple[float, ...]
    d: tuple[float, ...]
    delta: tuple[float, ...]
    knob: float = 1.0

    @classmethod
    def along(cls, d: Sequence[float], *, x: float = -1.7, delta: float = 0.0, knob: float = 1.0) -> Tokens:
        return cls((x,) * len(d), tuple(d), (delta,) * len(d), knob)

    def __len__(self) -> int:
        return len(self.d)

    def atom(self, node: Node) -> list[float]:
        if node.vocabulary:
            raise NotEvaluableError("logits, not the sampled token's log-probability")
        if node.roles == POLICY:
            return list(self.x)
        if node.roles == REFERENCE:
            return [x - d for x, d in zip(self.x, self.d, strict=True)]
        if node.roles == OLD:
            return [x - delta for x, delta in zip(self.x, self.delta, strict=True)]
        raise NotEvaluableError(node.text or "a foreign tensor")

    def slope(self, node: Node) -> list[float]:
        return [1.0 if node.live else 0.0] * len(self)


class Vocabulary(Struct, frozen=True):
    """One position: logits of the policy and of the reference, and the direction that the policy's logits move in."""

    policy: tuple[float, ...]
    reference: tuple[float, ...]
    direction: tuple[float, ...]
    knob: float = 1.0

    def __len__(self) -> int:
        return len(self.policy)

    def atom(self, node: Node) -> list[float]:
        if not node.vocabulary:
            raise NotEvaluableError("one token's log-probability among logits")
        if node.roles in (POLICY, OLD):
            return list(self.policy)
        if node.roles == REFERENCE:
            return list(self.reference)
        raise NotEvaluableError(node.text or "foreign logits")

    def slope(self, node: Node) -> list[float]:
        return list(self.direction) if node.live else [0.0] * len(self)


class Dual(Struct):
    """Values and slopes at the points; where `clamped`, some clamp on the way was in force."""

    values: list[float]
    slopes: list[float]
    clamped: list[bool]


def evaluate(root: Node, points: Tokens | Vocabulary, assignment: Assignment) -> Dual:
    """The root at every point, choices decided by the assignment.  Raises NotEvaluableError."""
    return evaluate_all(root, points, assignment)[root]


def evaluate_all(root: Node, points: Tokens | Vocabulary, assignment: Assignment) -> dict[Node, Dual]:
    """Every node that the root is computed from under the assignment.  Raises NotEvaluableError."""
    results: dict[Node, Dual] = {}
    for node in _needed(root, assignment):
        results[node] = _one(node, [results[arg] for arg in _arguments(node, assignment)], points)
    return results


def _needed(root: Node, assignment: Assignment) -> list[Node]:
    """As `reachable`, without the arms of choices that are not taken."""
    seen: set[Node] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(_arguments(node, assignment))
    return sorted(seen, key=lambda node: node.serial)


def taken_parts(root: Node, assignment: Assignment) -> frozenset[Node] | None:
    """What the root is computed from under an assignment; None where it has no value there."""
    try:
        return frozenset(_needed(root, assignment))
    except NotEvaluableError:
        return None


def _arguments(node: Node, assignment: Assignment) -> Sequence[Node]:
    if node.op is Op.CHOICE:
        return (chosen(node, assignment),)
    if node.op is Op.STACK:  # what only fills it up has no policy in it
        return [arg for arg in node.args if arg.roles] or node.args[:1]
    return node.args


def chosen(node: Node, assignment: Assignment) -> Node:
    """The arm that a choice takes.  Raises NotEvaluableError where it takes none (a branch that raises)."""
    for condition, arm in zip(node.conditions, node.args, strict=True):
        if condition.holds(assignment) is not False:
            return arm
    raise NotEvaluableError("no branch gives a value under these settings")


def _one(node: Node, args: list[Dual], points: Tokens | Vocabulary) -> Dual:
    count, op = len(points), node.op
    if op is Op.ATOM:
        return Dual(points.atom(node), points.slope(node), [False] * count)
    if op is Op.NUMBER or op is Op.SCALAR or op is Op.MASK:
        unknown = points.knob if op is Op.SCALAR else 1.0
        value = unknown if node.number is None else node.number
        return Dual([value] * count, [0.0] * count, [False] * count)
    first = args[0]
    if op is Op.NEG:
        return Dual([-value for value in first.values], [-slope for slope in first.slopes], first.clamped)
    if op is Op.ADD:
        other = args[1]
        return Dual(
            [u + v for u, v in zip(first.values, other.values, strict=True)],
            [u + v for u, v in zip(first.slopes, other.slopes, strict=True)],
            _either(first, other),
        )
    if op is Op.STACK:
        return _all_alike(args)
    if op is Op.WHERE and node.args[0].is_scalar and known_number(node.args[0]) is None:
        return _all_alike(args[1:])  # which of the two holds, nobody knows
    if op is Op.CHOICE or op is Op.TOPK or is_linear_by_name(node):
        return first
    if op is Op.DETACH:
        return Dual(first.values, [0.0] * count, first.clamped)
    if op is Op.CLAMP:
        return _clamp(node, args)
    if op is Op.MIN or op is Op.MAX:
        return _extreme(node, args)
    if op in (Op.REDUCE, Op.SOFTMAX, Op.LOGSOFTMAX, Op.LOGSUMEXP):
        return _over_axis(node, first, points)
    rule = RULES.get(op)
    if rule is None:
        raise NotEvaluableError(node.text or op.name.lower())
    pairs = [list(zip(arg.values, arg.slopes, strict=True)) for arg in args]
    results = [guarded(rule, list(at), node) for at in zip(*pairs, strict=True)]
    clamped = first.clamped if len(args) == 1 else _either(first, *args[1:])
    return Dual([value for value, _ in results], [slope for _, slope in results], clamped)


def _all_alike(parts: list[Dual]) -> Dual:
    """The one value that all have.  Raises UndecidedError where they differ."""
    first = parts[0]
    if any(part.values != first.values or part.slopes != first.slopes for part in parts):
        raise UndecidedError("one of several values")
    return first


def is_linear_by_name(node: Node) -> bool:
    """A call that was not followed and by its name averages, gathers or cuts the one tensor that it is given."""
    return node.op is Op.OPAQUE and len(node.args) == 1 and not node.vocabulary and names.is_linear_call(node.text)


def is_average(node: Node) -> bool:
    """A mean or sum over tokens, or a call that its name says is one."""
    return node.op is Op.REDUCE or (is_linear_by_name(node) and names.is_average(node.text.rpartition(".")[2]))


def _either(first: Dual, *others: Dual) -> list[bool]:
    flags = first.clamped
    for other in others:
        if any(other.clamped):
            flags = [one or two for one, two in zip(flags, other.clamped, strict=True)]
    return flags


def _clamp(node: Node, args: list[Dual]) -> Dual:
    """As torch: outside the bounds the slope is zero, at a bound it is not.  A bound that is not known is none."""
    source, low, high = args
    bounds = [known_number(bound) for bound in node.args[1:]]
    lows = low.values if bounds[0] is not None else [-INFINITE] * len(low.values)
    highs = high.values if bounds[1] is not None else [INFINITE] * len(high.values)
    values, slopes, clamped = [], [], []
    for value, slope, was, lower, upper in zip(source.values, source.slopes, source.clamped, lows, highs, strict=True):
        outside = not lower <= value <= upper
        values.append(min(max(value, lower), upper))
        slopes.append(0.0 if outside else slope)
        clamped.append(was or outside)
    return Dual(values, slopes, clamped)


def known_number(node: Node) -> float | None:
    """The number of a node that is arithmetic of known numbers, else None."""
    if node.op is Op.NUMBER:
        return node.number
    if node.op is Op.SCALAR:
        return node.number
    if node.op is Op.NEG:
        inner = known_number(node.args[0])
        return None if inner is None else -inner
    if node.op in (Op.MUL, Op.DIV, Op.ADD):
        first, second = (known_number(arg) for arg in node.args)
        if first is None or second is None or (node.op is Op.DIV and not second):
            return None
        return first * second if node.op is Op.MUL else first / second if node.op is Op.DIV else first + second
    return None


def _extreme(node: Node, args: list[Dual]) -> Dual:
    """The larger or smaller of two; a constant that wins is a clamp."""
    one, other = args
    values, slopes, clamped = [], [], []
    for at, (u, v) in enumerate(zip(one.values, other.values, strict=True)):
        first = u >= v if node.op is Op.MAX else u <= v
        winner, index = (one, 0) if first else (other, 1)
        values.append(winner.values[at])
        slopes.append(winner.slopes[at])
        clamped.append(one.clamped[at] or other.clamped[at] or node.args[index].is_scalar)
    return Dual(values, slopes, clamped)


def _over_axis(node: Node, source: Dual, points: Tokens | Vocabulary) -> Dual:
    """Reductions over tokens leave each token's share as it is; over the vocabulary they are computed."""
    over_vocabulary = node.args[0].vocabulary and node.axis in OVER_VOCABULARY
    if isinstance(points, Tokens):
        if node.op is Op.REDUCE:
            return source
        raise NotEvaluableError("a softmax of logits")
    if node.op is Op.REDUCE and not over_vocabulary:
        return source
    count = len(points)
    if node.op is Op.REDUCE:
        share = 1 / count if node.text == "mean" else 1.0
        return Dual(
            [math.fsum(source.values) * share] * count,
            [math.fsum(source.slopes) * share] * count,
            [any(source.clamped)] * count,
        )
    top = max(source.values)
    weights = [math.exp(value - top) for value in source.values]
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    mean_slope = math.fsum(share * slope for share, slope in zip(shares, source.slopes, strict=True))
    normaliser = top + math.log(total)
    if node.op is Op.LOGSUMEXP:
        return Dual([normaliser] * count, [mean_slope] * count, source.clamped)
    log_shares = [value - normaliser for value in source.values]
    slopes = [slope - mean_slope for slope in source.slopes]
    if node.op is Op.LOGSOFTMAX:
        return Dual(log_shares, slopes, source.clamped)
    return Dual(shares, [share * slope for share, slope in zip(shares, slopes, strict=True)], source.clamped)
