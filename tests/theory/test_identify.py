"""Black boxes identified by value and slope; here both are plain functions, no torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.model import EstimatorName
from klaudit.theory import ESTIMATORS
from klaudit.theory.identify import Identity, identify
from klaudit.theory.matching import Point, Probe, Sample

estimators = st.sampled_from(sorted(ESTIMATORS))
scales = st.floats(0.01, 50).map(lambda x: float(f"{x:.3g}"))


def box(value: Callable[[float], float], slope: Callable[[float], float]) -> Probe:
    def probe(points: Sequence[Point]) -> list[Sample]:
        return [Sample(value(point.d), slope(point.d)) for point in points]

    return probe


def of_estimator(name: EstimatorName, scale: float = 1.0, shift: float = 0.0) -> Probe:
    estimator = ESTIMATORS[name]
    return box(lambda d: scale * estimator.value(d) + shift, lambda d: scale * estimator.slope(d))


@settings(max_examples=30, deadline=None)
@given(estimators, scales, st.sampled_from([0.0, 0.5, -3.0]))
def test_scaled_and_shifted_estimators_are_recognised(name: EstimatorName, scale: float, shift: float) -> None:
    found = identify(of_estimator(name, scale, shift), "loss")
    assert (found.estimator, found.gradient) == (name, "pathwise")
    assert found.scale == pytest.approx(scale)
    assert found.constant == pytest.approx(shift, abs=1e-9)
    assert found.live.is_everywhere


@settings(max_examples=20, deadline=None)
@given(estimators, scales)
def test_a_reward_is_judged_by_its_value(name: EstimatorName, scale: float) -> None:
    found = identify(of_estimator(name, scale), "reward")
    assert found.verdict == ("unbiased" if name == "k1" else "biased")
    assert found.gradient == "score"


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["k2", "k3", "abs"]), st.floats(0.12, 12), scales)
def test_clamps_are_found_wherever_they_stand(name: EstimatorName, bound: float, scale: float) -> None:
    estimator = ESTIMATORS[name]
    clipped = box(
        lambda d: scale * estimator.value(max(-bound, min(bound, d))),
        lambda d: scale * estimator.slope(d) if abs(d) <= bound else 0.0,
    )
    found = identify(clipped, "loss")
    assert found.estimator == name
    assert (found.live.low, found.live.high) == pytest.approx((-bound, bound), rel=1e-3)
    assert any("no gradient" in note for note in found.notes)


def weighted(power: int, attached: bool, name: EstimatorName = "k3") -> Identity:
    estimator = ESTIMATORS[name]

    def probe(points: Sequence[Point]) -> list[Sample]:
        return [
            Sample(
                math.exp(power * p.log_rho) * estimator.value(p.d),
                math.exp(power * p.log_rho) * (estimator.slope(p.d) + (estimator.value(p.d) if attached else 0.0)),
            )
            for p in points
        ]

    return identify(probe, "loss", takes_old=True)


def test_ratios_are_told_apart() -> None:
    assert (weighted(1, True).gradient, weighted(1, True).verdict) == ("importance-weighted", "unbiased-per-token")
    assert (weighted(1, False).variant, weighted(1, False).verdict) == ("detached-ratio", "biased")
    assert weighted(1, False, "k2").verdict == "unbiased-per-token"
    assert weighted(0, False).notes == ("its value does not use the old log-probabilities",)
    assert "otherwise than as a factor" in weighted(2, False).notes[0]


def test_without_a_ratio_the_straight_through_form_is_named() -> None:
    found = identify(box(ESTIMATORS["k3"].value, lambda d: d), "loss")
    assert (found.estimator, found.gradient, found.verdict) == ("k3", "straight-through-k2", "unbiased-per-token")


@pytest.mark.parametrize(
    ("value", "slope", "verdict"),
    [
        (lambda d: d**3, lambda d: 3 * d * d, "biased"),
        (lambda d: math.sin(d), lambda d: 2 * d + 1, "unbiased-per-token"),
        (lambda d: 0.0, lambda d: 0.0, "no-gradient"),
        (lambda d: d, lambda d: 0.0, "no-gradient"),
        (lambda d: -d * d / 2, lambda d: -d, "biased"),
        (lambda d: -d, lambda d: -1.0, "no-regularisation"),
    ],
)
def test_verdicts_of_what_fits_no_row(value, slope, verdict) -> None:
    assert identify(box(value, slope), "loss").verdict == verdict


def test_a_reversed_sign_is_said() -> None:
    found = identify(of_estimator("k1", -1.0), "reward")
    assert found.verdict == "biased"
    assert any("sign is reversed" in note for note in found.notes)


def test_probability_weighted_samples_are_not_judged() -> None:
    def probe(points: Sequence[Point]) -> list[Sample]:
        return [Sample(math.exp(p.log_pi) * p.d, math.exp(p.log_pi) * (p.d + 1)) for p in points]

    found = identify(probe, "loss")
    assert (found.estimator, found.verdict, found.weight) == ("unknown", "unknown", None)
    assert found.notes == ("depends on log pi itself, not only on log pi - log pi_ref",)


def test_nothing_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite nowhere"):
        identify(box(lambda d: math.nan, lambda d: 1.0), "loss")


def test_an_overflow_far_away_is_a_note() -> None:
    found = identify(box(lambda d: d * d / 2, lambda d: d if d > -20 else math.nan), "loss")
    assert found.live.low == pytest.approx(-20)
    assert found.notes == ("not finite for d < -20",)
