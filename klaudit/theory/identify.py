"""Which estimator and gradient a black box is, told from its value and slope alone.

A penalty is known by what it does at chosen points: its value says which estimator it is, its slope with respect to log pi what autograd
descends.  Whoever can evaluate both (autograd, a dual-number interpreter) can identify; nothing here runs or parses code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.theory.estimators import ESTIMATORS
from klaudit.theory.live_range import EVERYWHERE, LiveRange, live_range
from klaudit.theory.weights import ZERO, ScoreWeight


@dataclass(frozen=True, slots=True)
class Point:
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


@dataclass(frozen=True, slots=True)
class Sample:
    """The penalty at a point: its value and its derivative with respect to log pi, as autograd sees it."""

    value: float
    slope: float


Probe: TypeAlias = Callable[[Sequence[Point]], Sequence[Sample]]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a penalty was found to be: `scale` times the estimator plus `constant`.

    `weight` is its score weight in the placement asked for (None: no known formula), followed for d in `live`.
    `samples` are `(d, value, score weight)` for a reader to check.
    """

    estimator: EstimatorName
    gradient: Gradient
    variant: str
    scale: float
    constant: float
    weight: ScoreWeight | None
    verdict: Verdict
    live: LiveRange
    notes: tuple[str, ...]
    samples: tuple[tuple[float, float, float], ...]


_UNIT = (-2.0, -1.4, -1.0, -0.7, -0.5, -0.3, -0.15, 0.15, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
_FINE, _COARSE = 1e-5, 2e-2  # relative: float32 inside the penalty, bfloat16 inside it
_VIEWS = ((1.0, _FINE), (0.25, _FINE), (0.05, _FINE), (1.0, _COARSE))  # nearer to d = 0 in case clamps are tight
_SHOWN = (-12.0, -5.0, -3.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 3.0, 5.0, 12.0)
_OTHER_LEVEL = -7.0  # another log ref: a penalty in d alone gives the same there
_RATIOS = (-0.1, 0.1)
_FAR_RATIO = 8.0


@dataclass(frozen=True, slots=True)
class _View:
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

    def follows(self, seen: Sequence[float], weight: Callable[[float], float]) -> bool:
        expected = [weight(point.d) for point in self.points]
        scale = max(map(abs, expected))
        return all(abs(a - b) <= self.tolerance * scale + 1e-12 for a, b in zip(seen, expected, strict=True))


@dataclass(frozen=True, slots=True)
class _Value:
    estimator: EstimatorName
    scale: float
    constant: float


def identify(probe: Probe, placement: Placement, *, takes_old: bool = False) -> Identity:
    """Identify a per-token penalty used as `placement` (`loss` or `reward`).

    `takes_old` says that the penalty reads log pi_old, so that importance ratios are looked for.  Raises ValueError where the penalty is
    finite nowhere near d = 0.
    """
    view, value = _view(probe, placement)
    level_notes = _level_notes(probe, view)
    depends_on_d_alone = not level_notes
    notes = [*_value_notes(value, view), *level_notes]
    variant, ratio_note = _ratio(probe, view, value) if takes_old else ("", "")
    notes += [ratio_note] if ratio_note else []
    if placement == "loss":
        gradient, weight = _slope(view, value, has_ratio=bool(variant))
        variant = "detached-ratio" if variant and gradient == "pathwise" else ""
    else:
        gradient, variant = "score", ""
        weight = ESTIMATORS[value.estimator].value.scaled(value.scale) if value.estimator in ESTIMATORS else None
        if any(view.slopes):
            notes.append("carries gradient: a reward must be detached")
    live = EVERYWHERE
    expected = weight if placement == "loss" or weight is None else weight + ScoreWeight.of(constant=value.constant)
    if expected is not None and depends_on_d_alone:
        live = live_range(
            lambda ds: [_pick(sample, placement) for sample in probe([Point(d) for d in ds])], expected, view.tolerance
        )
        notes += live.notes
    verdict = _verdict(view, placement, weight) if depends_on_d_alone else "unknown"
    if weight is not None and weight["d"] < 0 and verdict == "biased":
        notes.append("the sign is reversed: it drives the policy away from the reference")
    shown = tuple(
        (d, sample.value, _pick(sample, placement))
        for d, sample in zip(_SHOWN, probe([Point(d) for d in _SHOWN]), strict=True)
    )
    estimator = value.estimator if depends_on_d_alone else "unknown"
    return Identity(
        estimator, gradient, variant, value.scale, value.constant, weight, verdict, live, tuple(notes), shown
    )


def _view(probe: Probe, placement: Placement) -> tuple[_View, _Value]:
    """The widest and most exact view in which the value is a known estimator; else the widest finite one."""
    widest: _View | None = None
    for core, tolerance in _VIEWS:
        points = tuple(Point(core * d) for d in _UNIT)
        view = _View(points, tuple(probe(points)), tolerance)
        if not view.is_finite(placement):
            continue
        widest = widest or view
        for name, estimator in ESTIMATORS.items():
            scale, constant = _linear_fit([estimator.value(point.d) for point in points], view.values)
            fitted = (estimator.value.scaled(scale) + ScoreWeight.of(constant=constant)) if scale else ZERO
            if scale and view.follows(view.values, fitted):
                return view, _Value(
                    name, _rounded(scale), 0.0 if abs(constant) < 10 * tolerance * abs(scale) else constant
                )
    if widest is None:
        raise ValueError("the penalty is finite nowhere near log pi = log pi_ref")
    return widest, _Value("unknown", 1.0, 0.0)


def _slope(view: _View, value: _Value, *, has_ratio: bool) -> tuple[Gradient, ScoreWeight | None]:
    """How the gradient comes about, and the score weight that the slopes follow."""
    if not any(view.slopes):
        return "none", ZERO
    linear = ScoreWeight.of(linear=value.scale)
    if value.estimator in ESTIMATORS:
        estimator = ESTIMATORS[value.estimator]
        pathwise = estimator.slope.scaled(value.scale)
        attached = (estimator.value + estimator.slope).scaled(value.scale)
        candidates: list[tuple[Gradient, ScoreWeight]] = [("pathwise", pathwise)]
        # without a ratio to pi_old, k3's attached self-ratio and its straight-through form are one and the same function
        candidates += (
            [("importance-weighted", attached)]
            if has_ratio
            else [("straight-through-k2", linear), ("importance-weighted", attached)]
        )
        for gradient, weight in candidates:
            if view.follows(view.slopes, weight):
                return gradient, weight
    for estimator in ESTIMATORS.values():
        scale, _ = _linear_fit([estimator.slope(point.d) for point in view.points], view.slopes)
        if scale and view.follows(view.slopes, estimator.slope.scaled(scale)):
            return ("straight-through-k2" if estimator.name == "k2" else "pathwise"), estimator.slope.scaled(
                _rounded(scale)
            )
    scale, constant = _linear_fit([point.d for point in view.points], view.slopes)
    fitted = ScoreWeight.of(linear=_rounded(scale), constant=constant)
    return "pathwise", fitted if view.follows(view.slopes, fitted) else None


def _ratio(probe: Probe, view: _View, value: _Value) -> tuple[str, str]:
    """Whether the value is multiplied by pi/pi_old, as ("ratio" or "", a note)."""
    around = [list(probe([Point(point.d, log_rho) for point in view.points])) for log_rho in _RATIOS]

    def scaled_by(factors: Sequence[float]) -> bool:
        return all(
            view.follows([sample.value / factor for sample in samples], _interpolated(view))
            for samples, factor in zip(around, factors, strict=True)
        )

    if scaled_by([1.0] * len(_RATIOS)):
        return "", "" if value.estimator == "unknown" else "does not use the old log-probabilities in its value"
    if not scaled_by([math.exp(log_rho) for log_rho in _RATIOS]):
        return "", "uses the old log-probabilities otherwise than as a factor pi/pi_old"
    far = [Point(view.points[-1].d, sign * _FAR_RATIO) for sign in (-1, 1)]
    low, high = (sample.value / view.values[-1] for sample in probe(far))
    bounds = [
        f"{'above' if sign > 0 else 'below'} {factor:.4g}"
        for factor, sign in ((low, -1), (high, 1))
        if abs(factor - math.exp(sign * _FAR_RATIO)) > view.tolerance * math.exp(sign * _FAR_RATIO)
    ]
    return "ratio", f"the ratio pi/pi_old is clamped {' and '.join(bounds)}" if bounds else ""


def _interpolated(view: _View) -> Callable[[float], float]:
    known = {point.d: sample.value for point, sample in zip(view.points, view.samples, strict=True)}
    return known.__getitem__


def _verdict(view: _View, placement: Placement, weight: ScoreWeight | None) -> Verdict:
    if weight is None:
        seen = view.slopes if placement == "loss" else view.values
        scale, constant = _linear_fit([point.d for point in view.points], seen)
        weight = ScoreWeight.of(linear=scale, constant=constant)
        if not view.follows(seen, weight):
            return "biased"
    if weight.is_constant:
        return "no-gradient" if weight.is_zero and placement == "loss" else "no-regularisation"
    if not weight.is_unbiased:
        return "biased"
    return "unbiased" if placement == "reward" else "unbiased-per-token"


def _level_notes(probe: Probe, view: _View) -> list[str]:
    elsewhere = probe([Point(point.d, log_ref=_OTHER_LEVEL) for point in view.points])
    if view.follows([sample.value for sample in elsewhere], _interpolated(view)):
        return []
    return ["depends on log pi itself, not only on log pi - log pi_ref"]


def _value_notes(value: _Value, view: _View) -> list[str]:
    notes = []
    if value.estimator != "unknown" and value.scale != 1:
        notes.append(f"the value is {value.scale:.6g} times {value.estimator}")
    if value.constant:
        notes.append(f"the value is shifted by {value.constant:.6g}")
    if view.tolerance == _COARSE and value.estimator != "unknown":
        notes.append("follows its formula only within 2 %: low-precision arithmetic")
    return notes


def _pick(sample: Sample, placement: Placement) -> float:
    return sample.slope if placement == "loss" else sample.value


def _linear_fit(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Least squares y = scale*x + constant; scale 0 where x or y does not vary."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    if not spread or max(y) == min(y):
        return 0.0, mean_y
    scale = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    return scale, mean_y - scale * mean_x


def _rounded(scale: float) -> float:
    """Without the last digits' noise of a fit: 1.0000003 is 1."""
    return float(f"{scale:.4g}") if abs(float(f"{scale:.4g}") - scale) < 1e-5 * abs(scale) else scale
