"""Formulas over the whole vocabulary, compared with KL(pi||ref) and KL(ref||pi) of a few pairs of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from klaudit.code.conditions import Assignment
from klaudit.code.evaluation.classification import Classification, Direction
from klaudit.code.evaluation.dual import Dual, Vocabulary, evaluate, taken_parts
from klaudit.code.evaluation.fitting import affine, is_constant, same
from klaudit.code.graph import OVER_VOCABULARY, Node, Op
from klaudit.model import EstimatorName, Gradient

_POSITIONS = (
    Vocabulary((0.3, -1.1, 0.8, 0.0), (-0.4, 0.5, 0.2, 0.9), (0.7, -0.2, 0.4, 1.0)),
    Vocabulary((1.2, 0.1, -0.6, 0.4), (0.2, -0.9, 0.6, 0.3), (-0.5, 0.9, 0.1, 0.3)),
    Vocabulary((-0.2, 0.9, 0.4, -1.3), (0.8, 0.1, -0.7, 0.5), (0.2, 0.6, -0.8, 0.4)),
)


_NOISE = 1e-9  # of arithmetic: E[grad log pi] is 0 only up to it


def classify_vocabulary(node: Node, assignment: Assignment) -> Classification | None:
    """Compared with KL(pi||ref) and KL(ref||pi) of three pairs of distributions, and with their slopes along a direction."""
    parts = taken_parts(node, assignment) or frozenset()
    truncated = any(part.op is Op.TOPK for part in parts)
    per_entry = any(map(_is_mean_of_entries, parts))
    found = [_summed(evaluate(node, position, assignment)) for position in _POSITIONS]
    values, slopes = [value for value, _ in found], [slope for _, slope in found]
    if is_constant(values) and not any(slopes):
        return None
    for direction, divergence in _DIVERGENCES:
        exact = [divergence(position) for position in _POSITIONS]
        fit = affine([value for value, _ in exact], values)
        if fit is None or abs(fit[1]) > 1e-9:
            continue
        unit = [slope / fit[0] for slope in slopes]
        size = max(abs(slope) for _, slope in exact)
        silent = all(abs(slope) <= _NOISE * size for slope in unit)
        gradient: Gradient = "none" if silent else "pathwise" if same(unit, [slope for _, slope in exact]) else "score"
        if gradient == "score" and (other := _direction_of(unit)) is not None:
            direction, gradient = other, "pathwise"  # sum of sg(pi) * k3: it descends the other one than its value is
        exact_sum = direction == "pi||ref" and gradient != "score" and not truncated
        name: EstimatorName = "full" if exact_sum else "unknown"
        scale = fit[0] * len(_POSITIONS[0]) if per_entry else fit[0]
        return Classification(name, gradient, scale, direction=direction, truncated=truncated, per_entry=per_entry)
    return Classification("unknown", "pathwise", 1.0)


def _direction_of(slopes: Sequence[float]) -> Direction | None:
    """The divergence whose slopes these are."""
    for direction, divergence in _DIVERGENCES:
        if same(slopes, [divergence(position)[1] for position in _POSITIONS]):
            return direction
    return None


def _is_mean_of_entries(node: Node) -> bool:
    mean = node.op is Op.REDUCE and node.text == "mean"
    return mean and node.bears_kl and node.args[0].vocabulary and node.axis in OVER_VOCABULARY


def _summed(dual: Dual) -> tuple[float, float]:
    """One number a position: what was not reduced over the vocabulary is summed."""
    if is_constant(dual.values) and is_constant(dual.slopes):
        return dual.values[0], dual.slopes[0]
    return math.fsum(dual.values), math.fsum(dual.slopes)


def _log_softmax(logits: Sequence[float]) -> list[float]:
    normaliser = math.log(math.fsum(math.exp(value) for value in logits))
    return [value - normaliser for value in logits]


def _divergence(
    position: Vocabulary, value: Callable[[float, float, float], tuple[float, float]]
) -> tuple[float, float]:
    """Sum over the vocabulary of (value, slope) of (log pi, its slope, log ref)."""
    log_pi, log_ref = _log_softmax(position.policy), _log_softmax(position.reference)
    mean = math.fsum(math.exp(lp) * v for lp, v in zip(log_pi, position.direction, strict=True))
    pairs = [value(lp, v - mean, lr) for lp, v, lr in zip(log_pi, position.direction, log_ref, strict=True)]
    return math.fsum(pair[0] for pair in pairs), math.fsum(pair[1] for pair in pairs)


def _reverse(position: Vocabulary) -> tuple[float, float]:
    return _divergence(position, lambda lp, dlp, lr: (math.exp(lp) * (lp - lr), math.exp(lp) * dlp * (lp - lr + 1)))


def _forward(position: Vocabulary) -> tuple[float, float]:
    return _divergence(position, lambda lp, dlp, lr: (math.exp(lr) * (lr - lp), -math.exp(lr) * dlp))


_DIVERGENCES: tuple[tuple[Direction, Callable[[Vocabulary], tuple[float, float]]], ...] = (
    ("pi||ref", _reverse),
    ("ref||pi", _forward),
)
