"""Clamps: where one is active the pathwise score weight is zero (a dead zone) and the rewarded value constant.

A clamp stands on the estimator's value, on the log-ratio before the estimator, or on the argument of the exponential alone.  The last
one leaves the linear part of k3 unclamped, so beyond the bound the slope has the opposite sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.model import EstimatorName, Placement
from klaudit.theory.estimators import ESTIMATORS
from klaudit.theory.table import Row
from klaudit.theory.weights import ZERO, ScoreWeight

Target: TypeAlias = Literal["value", "log-ratio", "exponent"]
_FAR = 1e3  # nats: no log-probability difference of a token comes near


class Clamp(Struct, frozen=True):
    """Bounds, in nats, on `target`.  `log-ratio` bounds d itself; `exponent` bounds the argument of exp (-d in k3, d in its reverse)."""

    target: Target
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"an empty clamp: {self.low} to {self.high}")


class ClampedWeight(Struct, frozen=True):
    """A score weight in pieces: `(low, high, weight)` for low < d < high, from -inf to inf, in order."""

    pieces: tuple[tuple[float, float, ScoreWeight], ...]

    def __call__(self, d: float) -> float:
        """The weight at log-ratio `d` (nats); at a joint, that of the piece on the left."""
        return next(weight for _, high, weight in self.pieces if d <= high)(d)

    @property
    def dead(self) -> tuple[tuple[float, float], ...]:
        """The ranges of d without any gradient."""
        return tuple((low, high) for low, high, weight in self.pieces if weight.is_zero)

    def __str__(self) -> str:
        return "; ".join(f"{weight} for {range_text(low, high)}" for low, high, weight in self.pieces)


def clamped(estimator: EstimatorName, placement: Placement, clamp: Clamp) -> ClampedWeight:
    """The score weight of an estimator (pathwise in the loss, its value in the reward) under a clamp.

    Raises KeyError for an estimator without a per-token value (`full`, `unknown`), ValueError for an exponent clamp on one without exp.
    """
    form = ESTIMATORS[estimator]
    if clamp.target == "exponent":
        return _exponent_clamped(estimator, placement, clamp)
    inside = form.slope if placement == "loss" else form.value
    if clamp.target == "log-ratio":
        outer = [form.value(bound) if math.isfinite(bound) else 0.0 for bound in (clamp.low, clamp.high)]
        below, above = (ZERO, ZERO) if placement == "loss" else (ScoreWeight.of(constant=value) for value in outer)
        return _joined([(-math.inf, clamp.low, below), (clamp.low, clamp.high, inside), (clamp.high, math.inf, above)])
    lowest, highest = (
        (ZERO, ZERO) if placement == "loss" else (ScoreWeight.of(constant=bound) for bound in (clamp.low, clamp.high))
    )
    return _joined(_value_pieces(estimator, clamp, lowest, inside, highest))


def _value_pieces(
    estimator: EstimatorName, clamp: Clamp, below: ScoreWeight, inside: ScoreWeight, above: ScoreWeight
) -> list[tuple[float, float, ScoreWeight]]:
    value = ESTIMATORS[estimator].value
    if estimator == "k1":
        return [(-math.inf, clamp.low, below), (clamp.low, clamp.high, inside), (clamp.high, math.inf, above)]
    # the others fall to 0 at d = 0 and rise on both sides: left to right above, inside, below, inside, above
    outer = [_crossing(value, clamp.high, side) for side in (-1, 1)]
    inner = [_crossing(value, clamp.low, side) for side in (-1, 1)]
    return [
        (-math.inf, outer[0], above), (outer[0], inner[0], inside), (inner[0], inner[1], below), (inner[1], outer[1], inside),
        (outer[1], math.inf, above),
    ]  # fmt: skip


def _exponent_clamped(estimator: EstimatorName, placement: Placement, clamp: Clamp) -> ClampedWeight:
    form = ESTIMATORS[estimator]
    sign = {"k3": -1, "reversed-k3": 1}.get(estimator)
    if sign is None:
        raise ValueError(f"{estimator} has no exponential to clamp")
    inside = form.slope if placement == "loss" else form.value
    linear = ScoreWeight.of(linear=-sign, constant=-1)

    def beyond(bound: float) -> ScoreWeight:
        if not math.isfinite(bound):
            return ZERO
        return (
            ScoreWeight.of(constant=-sign) if placement == "loss" else linear + ScoreWeight.of(constant=math.exp(bound))
        )

    low, high = sorted((sign * clamp.low, sign * clamp.high))
    return _joined([(-math.inf, low, beyond(sign * low)), (low, high, inside), (high, math.inf, beyond(sign * high))])


def _crossing(value: Callable[[float], float], level: float, side: int) -> float:
    """The d on one side of 0 where a value that rises from 0 reaches `level`; 0 at or below it, infinite where it never does."""
    if level <= 0:
        return 0.0
    near, far = 0.0, 1.0
    while far < _FAR and value(side * far) < level:
        near, far = far, 2 * far
    if not value(side * min(far, _FAR / 2)) >= level and far >= _FAR:
        return side * math.inf
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (near, middle) if value(side * middle) >= level else (middle, far)
    return side * far


def _joined(pieces: list[tuple[float, float, ScoreWeight]]) -> ClampedWeight:
    """Without empty pieces, and with equal neighbours as one."""
    kept: list[tuple[float, float, ScoreWeight]] = []
    for low, high, weight in pieces:
        if low >= high:
            continue
        if kept and kept[-1][2] == weight:
            kept[-1] = (kept[-1][0], high, weight)
        else:
            kept.append((low, high, weight))
    return ClampedWeight(tuple(kept))


def cut(row: Row, where: str, elsewhere: str = "") -> Row:
    """A row of the table whose values or slopes a clamp near the reference leaves only in a range of d: then it descends neither KL.

    `elsewhere` is the weight outside that range, by default a constant in the reward and 0 in the loss.
    """
    if row.verdict in ("unknown", "no-gradient"):
        return row
    elsewhere = elsewhere or ("constant" if row.placement == "reward" else "0")
    weight = f"{row.weight_text} where {where}, {elsewhere} elsewhere"
    return Row(row.estimator, row.placement, row.gradient, None, weight, "neither KL", "biased")


def range_text(low: float, high: float) -> str:
    """`d < 3`, `-2.6 < d < 11`"""
    if math.isinf(low):
        return "all d" if math.isinf(high) else f"d < {high:.4g}"
    return f"d > {low:.4g}" if math.isinf(high) else f"{low:.4g} < d < {high:.4g}"
