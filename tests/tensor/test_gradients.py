"""Expected gradients against independent computations: by hand, by finite differences, by sampling."""

from __future__ import annotations

import math

import pytest
import torch

from klaudit.tensor.gradients import distance, expected_gradient, moments, objective_gradient, sample_gradients
from klaudit.tensor.instances import autoregressive, categorical
from klaudit.tensor.laboratory import Laboratory
from klaudit.tensor.objectives import DIVERGENCES, forward_kl, per_position, reverse_kl
from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import full_loss, full_reward, loss, reward, sequence_ratio_loss, total
from klaudit.theory import Objective

PI, REF = (0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)


@pytest.fixture(scope="module")
def worked_example() -> Outcomes:
    policy, reference = (torch.tensor(p, dtype=torch.float64).log() for p in (PI, REF))
    jacobian = torch.eye(4, dtype=torch.float64) - policy.exp()
    shape = (1, 4, 1, 4)
    outcomes = Outcomes(
        torch.arange(4)[None, :, None], torch.ones(1, 4, 1, dtype=torch.float64), policy.expand(shape), reference.expand(shape),
        policy.expand(shape), jacobian.expand(1, 4, 1, 4, 4), torch.empty(0),
    )  # fmt: skip
    return outcomes.on_policy()


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (reward("k1"), (0.3719, -0.0153, -0.1724, -0.1843)),
        (loss("k3", "pathwise"), (0.3, 0.1, -0.1, -0.3)),
        (reward("k3"), (0.0719, -0.1153, -0.0724, 0.1157)),
        (reward("k2"), (0.1757, -0.1318, -0.0879, 0.0439)),
        (loss("abs", "pathwise"), (0.24, 0.18, -0.28, -0.14)),
        (loss("k1", "pathwise"), (0.0, 0.0, 0.0, 0.0)),
        (loss("k2", "pathwise"), (0.3719, -0.0153, -0.1724, -0.1843)),
        (full_loss, (0.3719, -0.0153, -0.1724, -0.1843)),
    ],
)
def test_the_worked_example_of_the_documentation(worked_example: Outcomes, configuration, expected) -> None:
    found = expected_gradient(configuration, worked_example)[0]
    assert found.tolist() == pytest.approx(expected, abs=5e-5)


def test_k3_in_the_loss_gives_pi_minus_ref_in_logits(worked_example: Outcomes) -> None:
    expected = torch.tensor(PI, dtype=torch.float64) - torch.tensor(REF, dtype=torch.float64)
    assert (expected_gradient(loss("k3", "pathwise"), worked_example)[0] - expected).abs().max() < 1e-15


def test_the_true_gradient_agrees_with_finite_differences() -> None:
    outcomes = categorical(0.3, count=2).on_policy()
    policy, reference = outcomes.policy[:, 0, 0], outcomes.reference[:, 0, 0]
    found, step = objective_gradient(reverse_kl, outcomes), 1e-6

    def kl(logits: torch.Tensor) -> torch.Tensor:
        log_pi = torch.log_softmax(logits, -1)
        return (log_pi.exp() * (log_pi - reference)).sum(-1)

    for coordinate in range(8):
        shift = torch.zeros_like(policy)
        shift[:, coordinate] = step
        numeric = (kl(policy + shift) - kl(policy - shift)) / (2 * step)
        assert torch.allclose(found[:, coordinate], numeric, atol=1e-8)


def test_moments_are_those_of_a_large_sample() -> None:
    outcomes = categorical(0.3, count=1).on_policy()
    each = sample_gradients(loss("k3", "pathwise"), outcomes)[0]
    drawn = torch.multinomial(
        outcomes.weights[0], 200_000, replacement=True, generator=torch.Generator().manual_seed(1)
    )
    sample, found = each[drawn], moments(loss("k3", "pathwise"), outcomes)
    error = sample.std(0) / math.sqrt(len(sample))
    assert bool(((sample.mean(0) - found.mean[0]).abs() < 5 * error + 1e-12).all())
    assert float(sample.var(0).sum()) == pytest.approx(float(found.variance[0]), rel=0.05)


def test_expected_gradient_is_the_mean_of_sample_gradients() -> None:
    outcomes = autoregressive(0.2, count=2).off_policy()
    for configuration in (
        loss("k3", "importance-weighted"),
        full_loss,
        reward("k1", "return-to-go", "token-ratio", frozen=True),
    ):
        assert torch.allclose(
            expected_gradient(configuration, outcomes), moments(configuration, outcomes).mean, atol=1e-14
        )


def test_return_to_go_and_sequence_sum_have_one_expectation(laboratory: Laboratory) -> None:
    outcomes = laboratory.sequences[2].on_policy
    by_sum, to_go = (expected_gradient(reward("k1", credit), outcomes) for credit in ("sequence-sum", "return-to-go"))
    assert torch.allclose(by_sum, to_go, atol=1e-13)


def test_half_the_coefficient_in_both_places_gives_half_the_gradient(laboratory: Laboratory) -> None:
    bench = laboratory.sequences[1]
    for name in ("k1", "k3"):
        halves = total((0.5, reward(name)), (0.5, loss(name, "pathwise")))
        assert torch.allclose(expected_gradient(halves, bench.on_policy), bench.true / 2, atol=1e-13)


def test_full_in_both_places_is_exact_and_has_less_variance(laboratory: Laboratory) -> None:
    bench = laboratory.sequences[1]
    found = moments(total((1.0, full_reward), (1.0, full_loss)), bench.on_policy)
    assert torch.allclose(found.mean, bench.true, atol=1e-13)
    assert bool((found.variance < bench.k1_variance).all())


def test_the_geometric_mean_ratio_is_the_token_ratio_only_at_length_one(laboratory: Laboratory) -> None:
    tokens, sequences = laboratory.tokens[1], laboratory.sequences[1]
    of_mean = sequence_ratio_loss("k3", mean=True)
    assert torch.allclose(expected_gradient(of_mean, tokens.on_policy), tokens.true, atol=1e-13)
    assert float(distance(expected_gradient(of_mean, sequences.on_policy), sequences.true).bias.median()) > 0.05


def test_off_policy_k1_in_the_loss_pushes_away_from_the_old_policy(laboratory: Laboratory) -> None:
    bench = laboratory.tokens[1]
    found = expected_gradient(loss("k1", "pathwise"), bench.off_policy)
    away = objective_gradient(per_position(Objective.of("KL(pi_old||pi)")), bench.off_policy)
    assert torch.allclose(found, -away, atol=1e-14)


def test_divergences_vanish_where_the_policies_are_one() -> None:
    table = torch.log_softmax(torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), -1)
    for name, divergence in DIVERGENCES.items():
        expected = 1.0 if "exp(d) - d" in name else 0.0
        assert torch.allclose(
            divergence(table, table, table), torch.full((3,), expected, dtype=torch.float64), atol=1e-14
        ), name


def test_sequence_divergences_are_nonnegative(laboratory: Laboratory) -> None:
    for bench in laboratory.sequences:
        assert bool((forward_kl(bench.on_policy) > 0).all())
        assert torch.allclose(reverse_kl(bench.on_policy), torch.tensor(bench.kl, dtype=torch.float64), rtol=1e-9)


def test_distance_of_scaled_and_vanishing_gradients() -> None:
    true = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    twice = distance(2 * true, true)
    assert (float(twice.norm_ratio), float(twice.cosine), float(twice.bias), float(twice.multiplier)) == pytest.approx(
        (2, 1, 1, 2)
    )
    nothing = distance(0 * true, true)
    assert math.isnan(float(nothing.cosine)) and float(nothing.bias) == 1.0
    across = distance(torch.tensor([[-4.0, 3.0]], dtype=torch.float64), true)
    assert float(across.angle) == pytest.approx(90)
