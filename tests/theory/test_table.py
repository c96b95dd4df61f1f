"""The table against the design's own words, and against the estimators that it is made from."""

from __future__ import annotations

import math
from typing import get_args

import pytest

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.theory import ESTIMATORS, TABLE, VARIANTS, Objective, look_up, look_up_variant
from klaudit.theory.variants import Variant

DESIGN = [  # estimator, placement, gradient, w(d), what it descends, verdict
    ("k1", "reward", "score", "d", "KL(pi||ref)", "unbiased"),
    ("k1", "loss", "pathwise", "1", "nothing", "no-regularisation"),
    ("k2", "loss", "pathwise", "d", "KL(pi||ref)", "unbiased-per-token"),
    ("k3", "loss", "straight-through-k2", "d", "KL(pi||ref)", "unbiased-per-token"),
    ("k3", "loss", "pathwise", "1 - exp(-d)", "KL(ref||pi)", "biased"),
    ("k3", "reward", "score", "d + exp(-d) - 1", "KL(pi||ref) - KL(ref||pi)", "biased"),
    ("k2", "reward", "score", "0.5*d^2", "E_pi[k2] - KL(pi||ref)", "biased"),
    ("abs", "loss", "pathwise", "sign(d)", "2*TV(pi, ref)", "biased"),
    ("k3", "loss", "importance-weighted", "d", "KL(pi||ref)", "unbiased-per-token"),
    ("k1", "loss", "importance-weighted", "d + 1", "KL(pi||ref)", "unbiased-per-token"),
    ("k2", "loss", "importance-weighted", "d + 0.5*d^2", "E_pi[k2]", "biased"),
    ("reversed-k3", "loss", "pathwise", "exp(d) - 1", "0.5*chi2(pi||ref)", "biased"),
    ("k1", "loss", "none", "0", "nothing", "no-gradient"),
]


@pytest.mark.parametrize(("estimator", "placement", "gradient", "weight", "descends", "verdict"), DESIGN)
def test_the_table_says_what_the_design_says(
    estimator: EstimatorName, placement: Placement, gradient: Gradient, weight: str, descends: str, verdict: Verdict
) -> None:
    row = look_up(estimator, placement, gradient)
    assert str(row.weight) == row.weight_text == weight
    assert str(row.objective) == descends
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("estimator", "variant", "verdict"),
    [
        ("k2", "detached-ratio", "unbiased-per-token"),
        ("k3", "detached-ratio", "biased"),
        ("k3", "self-ratio", "unbiased-per-token"),
        ("k1", "self-ratio", "unbiased-per-token"),
        ("k3", "sequence-mean-ratio", "biased"),
        ("k3", "sequence-ratio", "unbiased"),
        ("k2", "sequence-sum", "unbiased"),
    ],
)
def test_variants_in_the_loss(estimator: EstimatorName, variant: Variant, verdict: Verdict) -> None:
    assert look_up_variant(estimator, "loss", variant).verdict == verdict


def test_group_std_takes_the_coefficient_away() -> None:
    assert look_up_variant("k1", "reward", "group-std").verdict == "rescaled"
    assert look_up_variant("k1", "reward", "group-mean").verdict == "unbiased"


@pytest.mark.parametrize("gradient", get_args(Gradient))
def test_a_reward_has_only_its_value(gradient: Gradient) -> None:
    assert look_up("k3", "reward", gradient) is TABLE["k3", "reward", "score"]


def test_what_the_table_has_not_is_unknown() -> None:
    assert look_up("unknown", "loss", "pathwise").verdict == "unknown"
    assert look_up_variant("abs", "reward", "group-std").verdict == "unknown"


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_slopes_are_the_values_derivatives(name: EstimatorName) -> None:
    estimator, step = ESTIMATORS[name], 1e-5
    for d in (-2.3, -0.4, 0.3, 1.7):
        slope = (estimator.value(d + step) - estimator.value(d - step)) / (2 * step)
        assert math.isclose(slope, estimator.slope(d), rel_tol=1e-7, abs_tol=1e-9)


def test_ids_are_unique_over_table_and_variants() -> None:
    ids = [row.id for row in (*TABLE.values(), *VARIANTS.values())]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("row", [*TABLE.values(), *VARIANTS.values()], ids=lambda row: row.id)
def test_verdict_and_weight_agree(row) -> None:
    if row.weight is None or row.variant == "length-mean":
        return
    kind = {"unbiased": "line", "unbiased-per-token": "line", "no-regularisation": "constant", "no-gradient": "zero"}
    found = (
        "zero"
        if row.weight.is_zero
        else "constant"
        if row.weight.is_constant
        else "line"
        if row.weight.is_unbiased
        else "other"
    )
    assert found == kind.get(row.verdict, "other")


def test_objectives_print_as_sums() -> None:
    assert str(Objective()) == "nothing"
    assert str(Objective.of(("TV(pi, ref)", 2), ("KL(pi||ref)", -1))) == "2*TV(pi, ref) - KL(pi||ref)"
    assert str(Objective.of(("KL(pi_old||pi)", -1))) == "-KL(pi_old||pi)"
