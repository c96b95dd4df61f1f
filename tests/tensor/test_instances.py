"""The enumerated policies: complete, normalised, at the distance asked for, with the right derivatives."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from klaudit.tensor.errors import TensorError
from klaudit.tensor.instances import _recurrent_log_probs, _sequences, autoregressive, categorical
from klaudit.tensor.objectives import reverse_kl

BOTH = pytest.mark.parametrize("make", [categorical, autoregressive])


@BOTH
@pytest.mark.parametrize("kl", [0.0035, 0.2, 0.7])
def test_distance_is_met_exactly(make, kl) -> None:
    outcomes = make(kl, count=3).on_policy()
    assert torch.allclose(reverse_kl(outcomes), torch.full((3,), kl, dtype=torch.float64), rtol=1e-9)


@BOTH
def test_probabilities_sum_to_one_under_every_policy(make) -> None:
    outcomes = make(0.2, count=3)
    for table in (outcomes.policy, outcomes.reference, outcomes.old):
        assert torch.allclose(outcomes.probabilities(table).sum(-1), torch.ones(3, dtype=torch.float64), atol=1e-13)


def test_sequences_are_all_there_once() -> None:
    tokens, mask = _sequences(3, 4)
    assert len(tokens) == 1 + 2 + 4 + 8 + 16
    assert len({tuple(row) for row in tokens.tolist()}) == len(tokens)
    assert bool((tokens[mask == 0] == 0).all())


@BOTH
def test_scores_average_to_zero(make) -> None:
    outcomes = make(0.2, count=3).on_policy()
    index = outcomes.tokens.expand(outcomes.policy.shape[:-1])[..., None, None].expand(
        *outcomes.policy.shape[:-1], 1, outcomes.jacobian.shape[-1]
    )
    score = (outcomes.jacobian.gather(-2, index).squeeze(-2) * outcomes.mask[..., None]).sum(2)
    assert torch.einsum("bn,bnp->bp", outcomes.weights, score).abs().max() < 1e-14


def test_the_jacobian_is_the_derivative_of_the_network() -> None:
    outcomes = autoregressive(0.2, count=1, vocabulary=3, length=3)
    theta = torch.randn(1, 2 * 3 + 27, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    tokens, _ = _sequences(3, 3)
    from klaudit.tensor.instances import _jacobian

    def tables(parameters: torch.Tensor) -> torch.Tensor:
        return _recurrent_log_probs(parameters, tokens, 3)

    found, step = _jacobian(tables, theta), 1e-6
    for parameter in (0, 4, 11, 20, 32):
        shift = torch.zeros_like(theta)
        shift[0, parameter] = step
        numeric = (tables(theta + shift) - tables(theta - shift)) / (2 * step)
        assert torch.allclose(found[..., parameter], numeric, atol=1e-8)
    assert outcomes.jacobian.shape[-1] == 33


@BOTH
def test_seeds_decide(make) -> None:
    assert torch.equal(make(0.2, count=2, seed=4).policy, make(0.2, count=2, seed=4).policy)
    assert not torch.equal(make(0.2, count=2, seed=4).policy, make(0.2, count=2, seed=5).policy)


def test_global_random_state_is_left_alone() -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    categorical(0.1, count=2)
    assert torch.equal(torch.rand(3), expected)


def test_a_distance_out_of_reach_is_refused() -> None:
    with pytest.raises(TensorError, match="smaller distance"):
        categorical(50.0)


def test_what_torch_warns_of_its_own_parts_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users cannot mend that forward mode is built with `torch.jit`; any other warning is theirs to see."""
    jvp = torch.func.jvp

    def warning(*arguments: Any, **options: Any) -> Any:
        warnings.warn("`torch.jit.script` is deprecated.", FutureWarning, stacklevel=2)
        warnings.warn("something else", FutureWarning, stacklevel=2)
        return jvp(*arguments, **options)

    monkeypatch.setattr(torch.func, "jvp", warning)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        autoregressive(0.2, count=1, vocabulary=3, length=2)
    assert [str(each.message) for each in seen] == ["something else"]
