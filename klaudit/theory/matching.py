"""A penalty sampled near d = 0, and which of the known formulas its values and slopes follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from klaudit.model import EstimatorName, Gradient, Placement
from klaudit.theory.estimators import ESTIMATORS
from klaudit.theory.weights import ZERO, ScoreWeight


class Point(Struct, frozen=True):
    """A token: d = log pi - log ref, log(pi/pi_old), and log ref itself, in nats."""

    d: float
    log_rho: float = 0.0
    log_ref: float = -3.0

    @property
    def log_pi(self) -> float:
        return self.log_ref + self.d

    @property
    def log_old(self) -> float:
        return self.log_pi - self.log_rho


class Sample(Struct, frozen=True):
    """The penalty at a point: its value and its derivative with respect to log pi, as autograd sees it."""

    value: float
    slope: float


Probe: TypeAlias = Callable[[Sequence[Point]], Sequence[Sample]]

_UNIT = (-2.0, -1.4, -1.0, -0.7, -0.5, -0.3, -0.15, 0.15, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
FINE, COARSE = 1e-5, 2e-2  # relative: float32 inside the penalty, bfloat16 inside it
_VIEWS = ((1.0, FINE), (0.25, FINE), (0.05, FINE), (1.0, COARSE))  # nearer to d = 0 in case clamps are tight


class View(Struct, frozen=True):
    """The penalty at points around d = 0, on-policy, and the relative tolerance within which formulas are compared with it."""

    points: tuple[Point, ...]
    samples: tuple[Sample, ...]
    tolerance: float

    @property
    def values(self) -> list[float]:
        return [sample.value for sample in self.samples]

    @property
    def slopes(self) -> list[float]:
        return [sample.slope for sample in self.samples]

    def is_finite(self, placement: Placement) -> bool:
        return all(map(math.isfinite, self.values if placement == "reward" else self.values + self.slopes))

    def follows(self, seen: Sequence[float], formula: Callable[[float], float]) -> bool:
        """Whether numbers seen at the points are those of the formula."""
        return self.residual(seen, formula) <= self.tolerance

    def residual(self, seen: Sequence[float], formula: Callable[[float], float]) -> float:
        """The largest difference, relative to the formula's largest value (or 1e-7, if that is smaller)."""
        expected = [formula(point.d) for point in self.points]
        return max(abs(a - b) for a, b in zip(seen, expected, strict=True)) / max(*map(abs, expected), 1e-7)

    def value_at(self, d: float) -> float:
        """The value sampled at one of the points."""
        return next(sample.value for point, sample in zip(self.points, self.samples, strict=True) if point.d == d)

    def fit(self, formula: Callable[[float], float], seen: Sequence[float]) -> tuple[float, float]:
        """Least squares seen = scale * formula + constant; scale 0 where either does not vary."""
        x = [formula(point.d) for point in self.points]
        mean_x, mean_y = sum(x) / len(x), sum(seen) / len(seen)
        spread = sum((a - mean_x) ** 2 for a in x)
        if not spread or max(seen) == min(seen):
            return 0.0, mean_y
        scale = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, seen, strict=True)) / spread
        return self._rounded(scale), mean_y - scale * mean_x

    def _rounded(self, scale: float) -> float:
        """Without the last digits' noise of a fit: 1.0000003 is 1."""
        short = float(f"{scale:.4g}" if self.tolerance == FINE else f"{scale:.2g}")
        return short if abs(short - scale) < self.tolerance * abs(scale) else scale


class ValueMatch(Struct, frozen=True):
    """The value is `scale` times the estimator plus `constant`, up to the relative `residual`."""

    estimator: EstimatorName
    scale: float = 1.0
    constant: float = 0.0
    residual: float = 0.0


def view_of(probe: Probe, placement: Placement) -> tuple[View, ValueMatch]:
    """The widest and most exact view in which the value is a known estimator; else the widest finite one.

    Raises ValueError where the penalty is finite nowhere near d = 0.
    """
    widest: View | None = None
    for core, tolerance in _VIEWS:
        points = tuple(Point(core * d) for d in _UNIT)
        view = View(points, tuple(probe(points)), tolerance)
        if not view.is_finite(placement):
            continue
        widest = widest or view
        if match := _match_value(view):
            return view, match
    if widest is None:
        raise ValueError("the penalty is finite nowhere near log pi = log pi_ref")
    return widest, ValueMatch("unknown")


def _match_value(view: View) -> ValueMatch | None:
    for name, estimator in ESTIMATORS.items():
        scale, constant = view.fit(estimator.value, view.values)
        formula = estimator.value.scaled(scale) + ScoreWeight.of(constant=constant)
        if scale and view.follows(view.values, formula):
            shift = 0.0 if abs(constant) < 10 * view.tolerance * abs(scale) else constant
            return ValueMatch(name, scale, shift, view.residual(view.values, formula))
    return None


def match_slope(view: View, value: ValueMatch, *, has_ratio: bool) -> tuple[Gradient, ScoreWeight | None]:
    """How the gradient comes about, and the score weight that the slopes follow (None: no known formula)."""
    if not any(view.slopes):
        return "none", ZERO
    for gradient, weight in _expected_slopes(value, has_ratio=has_ratio):
        if view.follows(view.slopes, weight):
            return gradient, weight
    for estimator in ESTIMATORS.values():  # the slope of another estimator than the value's
        scale, _ = view.fit(estimator.slope, view.slopes)
        if scale and view.follows(view.slopes, estimator.slope.scaled(scale)):
            return ("straight-through-k2" if estimator.name == "k2" else "pathwise"), estimator.slope.scaled(scale)
    scale, constant = view.fit(lambda d: d, view.slopes)
    line = ScoreWeight.of(linear=scale, constant=constant)
    return "pathwise", line if view.follows(view.slopes, line) else None


def _expected_slopes(value: ValueMatch, *, has_ratio: bool) -> list[tuple[Gradient, ScoreWeight]]:
    if value.estimator not in ESTIMATORS:
        return []
    estimator = ESTIMATORS[value.estimator]
    attached = (estimator.value + estimator.slope).scaled(value.scale)
    linear = ScoreWeight.of(linear=value.scale)
    # without a ratio to pi_old, k3's attached self-ratio and its straight-through form are one and the same function
    straight: list[tuple[Gradient, ScoreWeight]] = [] if has_ratio else [("straight-through-k2", linear)]
    return [("pathwise", estimator.slope.scaled(value.scale)), *straight, ("importance-weighted", attached)]
