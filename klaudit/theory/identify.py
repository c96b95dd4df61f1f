"""Which estimator and gradient a black box is, told from its value and slope alone.

A penalty is known by what it does at chosen points: its value says which estimator it is, its slope with respect to log pi what autograd
descends.  Whoever can evaluate both (autograd, a dual-number interpreter) can identify; nothing here runs or parses code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.theory.estimators import ESTIMATORS
from klaudit.theory.live_range import EVERYWHERE, LiveRange, Weights, live_range
from klaudit.theory.matching import COARSE, Point, Probe, Sample, ValueMatch, View, match_slope, view_of
from klaudit.theory.weights import ScoreWeight


class Identity(Struct, frozen=True):
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


_SHOWN = (-12.0, -5.0, -3.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 3.0, 5.0, 12.0)
_OTHER_LEVEL = -7.0  # another log ref: a penalty in d alone gives the same there
_RATIOS = (-0.1, 0.1)
_FAR_RATIO = 8.0
_EXACT = 1e-9  # the least tolerance beyond the view


def identify(probe: Probe, placement: Placement, *, takes_old: bool = False) -> Identity:
    """Identify a per-token penalty used as `placement` (`loss` or `reward`).

    `takes_old` says that the penalty reads log pi_old, so that importance ratios are looked for.  Raises ValueError where the penalty is
    finite nowhere near d = 0.
    """
    view, value = view_of(probe, placement)
    notes = _value_notes(value, view)
    has_ratio, ratio_note = _ratio(probe, view, value) if takes_old else (False, "")
    gradient, weight = (
        match_slope(view, value, has_ratio=has_ratio) if placement == "loss" else ("score", _reward_weight(view, value))
    )
    verdict, live = _verdict(view, placement, weight), EVERYWHERE
    if _depends_on_level(probe, view):
        notes.append("depends on log pi itself, not only on log pi - log pi_ref")
        value, weight, verdict = ValueMatch("unknown"), None, "unknown"
    elif weight is not None:
        formula = weight + ScoreWeight.of(constant=value.constant) if placement == "reward" else weight
        live = live_range(_weights(probe, placement), formula, max(_EXACT, 100 * value.residual))
    notes += [ratio_note] if ratio_note else []
    notes += live.notes
    if verdict == "biased" and (value.scale < 0 or (weight is not None and (-weight).is_unbiased)):
        notes.append("the sign is reversed: it drives the policy away from the reference")
    samples = zip(_SHOWN, probe([Point(d) for d in _SHOWN]), strict=True)
    return Identity(
        estimator=value.estimator,
        gradient=gradient,
        variant="detached-ratio" if has_ratio and gradient == "pathwise" else "",
        scale=value.scale,
        constant=value.constant,
        weight=weight,
        verdict=verdict,
        live=live,
        notes=tuple(notes),
        samples=tuple((d, sample.value, _pick(sample, placement)) for d, sample in samples),
    )


def _reward_weight(view: View, value: ValueMatch) -> ScoreWeight | None:
    if value.estimator in ESTIMATORS:
        return ESTIMATORS[value.estimator].value.scaled(value.scale)
    return ScoreWeight.of(constant=view.values[0]) if max(view.values) == min(view.values) else None


def _verdict(view: View, placement: Placement, weight: ScoreWeight | None) -> Verdict:
    if weight is None:  # no formula, but a straight line is unbiased whatever it comes from
        seen = view.slopes if placement == "loss" else view.values
        scale, constant = view.fit(lambda d: d, seen)
        weight = ScoreWeight.of(linear=scale, constant=constant)
        if not view.follows(seen, weight):
            return "biased"
    if weight.is_constant:
        return "no-gradient" if weight.is_zero and placement == "loss" else "no-regularisation"
    if not weight.is_unbiased:
        return "biased"
    return "unbiased" if placement == "reward" else "unbiased-per-token"


def _ratio(probe: Probe, view: View, value: ValueMatch) -> tuple[bool, str]:
    """Whether the value is multiplied by pi/pi_old, and what else is to be said of the old log-probabilities."""
    around = [(log_rho, list(probe([Point(point.d, log_rho) for point in view.points]))) for log_rho in _RATIOS]

    def is_divided_by(power: int) -> bool:
        return all(
            view.follows([sample.value / math.exp(power * log_rho) for sample in samples], view.value_at)
            for log_rho, samples in around
        )

    if is_divided_by(0):
        return False, "" if value.estimator == "unknown" else "its value does not use the old log-probabilities"
    if not is_divided_by(1):
        return False, "uses the old log-probabilities otherwise than as a factor pi/pi_old"
    return True, _ratio_clamps(probe, view)


def _ratio_clamps(probe: Probe, view: View) -> str:
    bounds = []
    for side, word in ((-1, "below"), (1, "above")):
        (sample,) = probe([Point(view.points[-1].d, side * _FAR_RATIO)])
        factor, expected = sample.value / view.values[-1], math.exp(side * _FAR_RATIO)
        if abs(factor - expected) > view.tolerance * expected:
            bounds.append(f"{word} {factor:.4g}")
    return f"the ratio pi/pi_old is clamped {' and '.join(bounds)}" if bounds else ""


def _depends_on_level(probe: Probe, view: View) -> bool:
    elsewhere = probe([Point(point.d, log_ref=_OTHER_LEVEL) for point in view.points])
    return not view.follows([sample.value for sample in elsewhere], view.value_at)


def _value_notes(value: ValueMatch, view: View) -> list[str]:
    notes = []
    if value.scale != 1:
        notes.append(f"the value is {value.scale:.6g} times {value.estimator}")
    if value.constant:
        notes.append(f"the value is shifted by {value.constant:.6g}")
    if view.tolerance == COARSE and value.estimator != "unknown":
        notes.append("follows its formula only within 2 %: low-precision arithmetic")
    return notes


def _weights(probe: Probe, placement: Placement) -> Weights:
    def sampled(ds: Sequence[float]) -> list[tuple[float, float]]:
        return [(_pick(sample, placement), sample.value) for sample in probe([Point(d) for d in ds])]

    return sampled


def _pick(sample: Sample, placement: Placement) -> float:
    return sample.slope if placement == "loss" else sample.value
