"""Before and after a fix."""

from __future__ import annotations

import pytest

from klaudit.model import EstimatorName, Gradient, Placement, Term, Verdict
from klaudit.tensor.change import compare, effect


def term(
    placement: Placement,
    estimator: EstimatorName,
    gradient: Gradient,
    verdict: Verdict,
    coefficient: float | None = 1e-3,
    **more: object,
) -> Term:
    return Term(placement, estimator, gradient, coefficient, True, "", verdict, **more)


K1 = term("reward", "k1", "score", "unbiased")
K1_STANDARDISED = term("reward", "k1", "score", "rescaled", normalised_by_group_std=True)
K2 = term("loss", "k2", "pathwise", "unbiased-per-token")
K3 = term("loss", "k3", "pathwise", "biased")
K3_REWARD = term("reward", "k3", "score", "biased")


def test_from_k3_in_the_loss_to_k1_in_the_reward() -> None:
    change = compare([K3], [K1])
    assert change.is_improvement
    assert change.before.sequence_bias is not None and change.before.sequence_bias > 0.1
    assert change.after.sequence_bias == pytest.approx(0, abs=1e-12)
    assert str(change.before).startswith("w(d) = 0.001 - 0.001*exp(-d): biased; bias ")
    assert str(change.after) == "w(d) = 0.001*d: unbiased; bias 0 per token, 0 over sequences"


def test_standardised_groups_are_no_end_point() -> None:
    change = compare([K3], [K1_STANDARDISED])
    assert not change.is_improvement
    assert change.after.multiplier is not None and change.after.multiplier > 100


def test_k2_is_exact_per_token_only() -> None:
    found = effect([K2])
    assert found.token_bias == pytest.approx(0, abs=1e-12)
    assert found.sequence_bias is not None and found.sequence_bias > 0.01


def test_both_places_add_up() -> None:
    found = effect([K3, K3_REWARD])
    assert (found.coefficient, found.verdict) == (1e-3, "unbiased")
    assert found.sequence_bias == pytest.approx(0, abs=1e-12)


def test_what_is_not_active_does_not_count() -> None:
    inactive = Term("loss", "k3", "pathwise", 0.5, False, "", "inactive")
    metric = Term("metric", "k3", "none", None, True, "", "inactive")
    assert effect([K1, inactive, metric, term("loss", "k3", "pathwise", "biased", 0.0)]) == effect([K1])
    assert effect([]).verdict == "inactive"
    assert effect([]).sequence_bias is None


def test_unknown_estimators_are_not_measured() -> None:
    found = effect([term("loss", "unknown", "pathwise", "unknown"), K1])
    assert (found.verdict, found.token_bias) == ("unknown", None)
    assert compare([term("loss", "unknown", "pathwise", "unknown")], [K1]).is_improvement


def test_an_unknown_coefficient_counts_as_one() -> None:
    found = effect([term("loss", "k3", "pathwise", "biased", None)])
    assert found.coefficient == 1.0
    assert found.token_bias == pytest.approx(effect([K3]).token_bias)
