"""Score weights: a small algebra of functions of d."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.theory import ZERO, ScoreWeight
from klaudit.theory.weights import BASIS

coefficients = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))
weights = st.dictionaries(st.sampled_from(sorted(BASIS)), coefficients, max_size=4).map(
    lambda parts: ScoreWeight.from_pairs(parts.items())
)
log_ratios = st.floats(-3, 3)


@settings(max_examples=40, deadline=None)
@given(weights, weights, log_ratios)
def test_a_sum_is_the_sum_at_every_point(a: ScoreWeight, b: ScoreWeight, d: float) -> None:
    assert math.isclose((a + b)(d), a(d) + b(d), rel_tol=1e-9, abs_tol=1e-8)


@settings(max_examples=40, deadline=None)
@given(weights, coefficients, log_ratios)
def test_scaling_scales_at_every_point(a: ScoreWeight, factor: float, d: float) -> None:
    assert math.isclose(a.scaled(factor)(d), factor * a(d), rel_tol=1e-9, abs_tol=1e-8)


@settings(max_examples=40, deadline=None)
@given(weights, log_ratios)
def test_the_printed_formula_means_the_weight(a: ScoreWeight, d: float) -> None:
    source = str(a).replace("|d|", "abs(d)").replace("^", "**")
    value = eval(source, {"d": d, "abs": abs, "exp": math.exp, "sign": BASIS["sign(d)"]})
    assert math.isclose(value, a(d), rel_tol=1e-4, abs_tol=1e-3)


def test_cancelling_weights_leave_nothing_behind() -> None:
    weight = ScoreWeight.of(decay=1, linear=0.1)
    assert weight + -weight == ZERO
    assert (ScoreWeight.of(linear=0.1) + ScoreWeight.of(linear=0.2) + ScoreWeight.of(linear=-0.3)).is_zero


@pytest.mark.parametrize(
    ("weight", "unbiased", "constant"),
    [
        (ScoreWeight.of(linear=1), True, False),
        (ScoreWeight.of(linear=0.001, constant=-7), True, False),
        (ScoreWeight.of(linear=-1), False, False),
        (ScoreWeight.of(constant=1), False, True),
        (ZERO, False, True),
        (ScoreWeight.of(linear=1, square=1e-6), False, False),
    ],
)
def test_unbiased_is_a_rising_line(weight: ScoreWeight, unbiased: bool, constant: bool) -> None:
    assert weight.is_unbiased is unbiased
    assert weight.is_constant is constant
