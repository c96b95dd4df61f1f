"""Intervals: the right quantiles, and the stated coverage."""

from __future__ import annotations

import math

import pytest
import torch

from klaudit.tensor.gradients import sample_gradients
from klaudit.tensor.montecarlo import Estimate, simultaneous_level, student_quantile
from klaudit.tensor.surrogates import reward
from klaudit.tensor.toy import CLOSE_5, FAR_5, ToySetting, drawn, exact_kl

TABULATED = {1: 63.657, 2: 9.925, 3: 5.841, 5: 4.032, 10: 3.169, 30: 2.750, 1000: 2.581}  # 99 %, two-sided


@pytest.mark.parametrize("degrees", TABULATED)
def test_students_quantiles(degrees: int) -> None:
    assert student_quantile(0.995, degrees) == pytest.approx(TABULATED[degrees], rel=0.01)
    assert student_quantile(0.005, degrees) == pytest.approx(-TABULATED[degrees], rel=0.01)


def covered(level: float, misses: int, trials: int) -> bool:
    """Whether a number of misses is what the level promises, within four standard deviations."""
    expected = (1 - level) * trials
    return abs(misses - expected) <= 4 * math.sqrt(expected * level) + 1


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("size", [5, 40])
def test_intervals_of_normal_samples_cover_at_the_stated_rate(level: float, size: int) -> None:
    trials = 2000
    samples = torch.randn(trials, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    misses = sum(0.0 not in Estimate.of(row).interval(level) for row in samples)
    assert covered(level, misses, trials)


@pytest.mark.parametrize("setting", [CLOSE_5, FAR_5], ids=lambda setting: setting.name)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_gradient_intervals_cover_the_exact_gradient_at_the_stated_rate(setting: ToySetting, level: float) -> None:
    rounds = 400
    _, true = exact_kl(setting)
    outcomes = drawn(setting, rounds, 300, torch.Generator().manual_seed(3))
    projected = sample_gradients(reward("k1"), outcomes) @ true / true.square().sum()
    misses = sum(1.0 not in Estimate.of(each).interval(level) for each in projected)
    assert covered(level, misses, rounds)


def test_one_sample_has_no_error() -> None:
    with pytest.raises(ValueError, match="at least two"):
        Estimate.of(torch.ones(1))


def test_many_intervals_hold_together() -> None:
    assert simultaneous_level(0.95, 10) == pytest.approx(0.995)
