"""Several terms together: the sum is judged, and nothing is said that could be wrong."""

from __future__ import annotations

import pytest

from klaudit.model import Verdict
from klaudit.theory import ZERO, judge_sum, look_up
from klaudit.theory.sums import WeightedRow
from klaudit.theory.table import Row

K1_REWARD, K3_REWARD, K2_REWARD = (look_up(name, "reward", "score") for name in ("k1", "k3", "k2"))
K1_LOSS, K2_LOSS, K3_LOSS, FULL_LOSS = (look_up(name, "loss", "pathwise") for name in ("k1", "k2", "k3", "full"))
K3_STRAIGHT = look_up("k3", "loss", "straight-through-k2")
FULL_REWARD = look_up("full", "reward", "score")


def of(row: Row, coefficient: float | None = 1.0, verdict: Verdict | None = None) -> WeightedRow:
    return row, coefficient, verdict or row.verdict


@pytest.mark.parametrize(
    ("terms", "verdict"),
    [
        ([], "inactive"),
        ([of(K3_LOSS, 0.1)], "biased"),
        ([of(K1_REWARD, 0.1)], "unbiased"),
        ([of(K1_REWARD, -0.1)], "biased"),
        ([of(K2_LOSS, -0.1)], "biased"),
        ([of(K1_LOSS, -0.1)], "no-regularisation"),
        ([of(K3_REWARD, 0.1), of(K3_LOSS, 0.1)], "unbiased"),
        ([of(K3_REWARD, 0.1), of(K3_LOSS, 0.2)], "biased"),
        ([of(K3_REWARD, 0.1), of(K3_STRAIGHT, 0.1)], "biased"),
        ([of(K1_REWARD, 0.1), of(K1_LOSS, 0.7)], "unbiased"),
        ([of(K1_REWARD), of(K2_LOSS)], "unbiased-per-token"),
        ([of(K1_REWARD), of(K3_LOSS)], "biased"),
        ([of(K2_LOSS), of(K2_REWARD)], "biased"),
        ([of(K2_LOSS), of(K2_LOSS, -1.0)], "no-gradient"),
        ([of(K1_REWARD, 1.0, "rescaled"), of(K2_LOSS)], "rescaled"),
        ([of(K1_REWARD, 1.0, "rescaled"), of(K1_LOSS)], "rescaled"),
        ([of(K1_REWARD, 1.0, "rescaled"), of(K3_LOSS)], "biased"),
        ([of(FULL_REWARD, 0.3), of(FULL_LOSS, 0.3)], "unbiased"),
        ([of(FULL_REWARD, 0.3), of(FULL_LOSS, 0.2)], "unknown"),
        ([of(FULL_LOSS), of(K1_REWARD)], "unbiased-per-token"),
        ([of(FULL_LOSS), of(K3_LOSS)], "unknown"),
        ([of(K1_REWARD, 1.0, "biased"), of(K2_LOSS)], "biased"),
    ],
)
def test_verdicts(terms: list[WeightedRow], verdict: Verdict) -> None:
    assert judge_sum(terms).verdict == verdict


@pytest.mark.parametrize(
    ("terms", "verdict"),
    [
        ([of(K3_LOSS, None)], "biased"),
        ([of(K3_LOSS, None), of(K3_REWARD, None)], "unknown"),  # unbiased if they are equal
        ([of(K3_LOSS, None), of(K3_LOSS, 0.1)], "biased"),
        ([of(K1_REWARD, None), of(K2_LOSS, None)], "unbiased-per-token"),
        ([of(K1_LOSS, None), of(K1_REWARD, None)], "unbiased"),
        ([of(K1_LOSS, None), of(K1_LOSS, 1.0)], "no-regularisation"),
        ([of(K1_REWARD, None), of(K2_LOSS, -1.0)], "unknown"),
    ],
)
def test_unknown_coefficients_give_only_what_holds_for_all(terms: list[WeightedRow], verdict: Verdict) -> None:
    assert judge_sum(terms).verdict == verdict
    assert judge_sum(terms).weight is None


def test_weights_add_and_print() -> None:
    both = judge_sum([of(K3_REWARD, 0.1), of(K3_LOSS, 0.1)])
    assert str(both.weight) == both.weight_text == "0.1*d"
    assert judge_sum([]).weight is ZERO
    assert judge_sum([of(K3_LOSS, None), of(K2_LOSS, 0.5)]).weight_text == "beta*(1 - exp(-d)) + 0.5*d"


def test_the_order_of_terms_does_not_matter() -> None:
    terms = [of(K3_REWARD, 0.1), of(K3_LOSS, 0.1), of(K2_LOSS, 0.2)]
    assert judge_sum(terms) == judge_sum(reversed(terms))
