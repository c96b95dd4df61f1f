"""The reference estimators: value and gradient of every form, in every dtype."""

from __future__ import annotations

import pytest
import torch

from klaudit.model import EstimatorName
from klaudit.tensor.configurations import form
from klaudit.tensor.estimators import GradientForm, estimate, penalty, score_weights
from klaudit.theory import ESTIMATORS, TABLE, Row

D = torch.linspace(-3, 3, 25, dtype=torch.float64)
DTYPES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_values_in_every_dtype(name: EstimatorName, dtype: torch.dtype) -> None:
    expected = torch.tensor([ESTIMATORS[name].value(d) for d in D.to(dtype).double().tolist()], dtype=torch.float64)
    found = estimate(name, D.to(dtype))
    assert found.dtype == dtype
    assert torch.allclose(found.double(), expected, rtol=DTYPES[dtype], atol=DTYPES[dtype])


IN_LOSS = [row for row in TABLE.values() if row.placement == "loss" and row.estimator in ESTIMATORS]


@pytest.mark.parametrize("row", IN_LOSS, ids=lambda row: row.id)
def test_score_weights_are_the_tables(row: Row) -> None:
    assert row.weight is not None
    expected = torch.tensor([row.weight(d) for d in D.tolist()], dtype=torch.float64)
    assert torch.allclose(score_weights(row.estimator, form(row), D), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "shape", ["pathwise", "importance-weighted", "straight-through-k2", "none", "detached-ratio", "self-ratio"]
)
def test_every_form_has_the_estimators_value_on_policy(shape: GradientForm) -> None:
    log_pi = D.clone().requires_grad_()
    value = penalty("k3", shape, log_pi, torch.zeros_like(D), D.clone())
    assert torch.allclose(value.detach(), estimate("k3", D), atol=1e-14)


def test_the_attached_ratio_times_k3_is_the_detached_one_times_k2_sample_by_sample() -> None:
    log_old = D - 0.3 * torch.sin(7 * D)
    slopes = []
    for name, ratio in (("k3", "importance-weighted"), ("k2", "detached-ratio")):
        log_pi = D.clone().requires_grad_()
        (slope,) = torch.autograd.grad(penalty(name, ratio, log_pi, torch.zeros_like(D), log_old).sum(), log_pi)
        slopes.append(slope)
    assert torch.allclose(*slopes, rtol=1e-12, atol=1e-13)


def test_no_gradient_reaches_the_reference_or_the_old_policy() -> None:
    log_pi, log_ref, log_old = (D.clone().requires_grad_() for _ in range(3))
    penalty("k3", "importance-weighted", log_pi, log_ref, log_old).sum().backward()
    assert log_pi.grad is not None
    assert log_ref.grad is None and log_old.grad is None


def test_unknown_estimators_are_refused() -> None:
    with pytest.raises(KeyError):
        estimate("full", D)
    assert ("full", "loss", "pathwise") in TABLE
