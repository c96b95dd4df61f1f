"""Group baselines and standardisation: exact enumeration against brute force, and the published numbers."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from klaudit.tensor.gradients import distance
from klaudit.tensor.groups import (
    Groups,
    Normalisation,
    constant_reward_rms,
    degenerate_share,
    expected_gradient,
    penalty_gradient,
)
from klaudit.tensor.instances import categorical


@pytest.fixture(scope="module")
def policies() -> tuple[torch.Tensor, torch.Tensor]:
    outcomes = categorical(0.2, count=1, vocabulary=4, seed=2)
    return outcomes.policy[0, 0, 0].exp(), outcomes.reference[0, 0, 0].exp()


def by_brute_force(policy: torch.Tensor, reward: torch.Tensor, size: int, normalisation: Normalisation) -> torch.Tensor:
    """Every ordered group, as a framework would process it."""
    total = torch.zeros_like(policy)
    for group in itertools.product(range(len(policy)), repeat=size):
        chosen = torch.tensor(group)
        rewards = reward[chosen]
        advantage = rewards - rewards.mean()
        if normalisation == "std":
            advantage = advantage / (rewards.std() + 1e-6)
        if normalisation == "leave-one-out":
            advantage = advantage * size / (size - 1)
        if normalisation == "none":
            advantage = rewards
        scores = torch.eye(len(policy), dtype=policy.dtype)[chosen] - policy
        total += policy[chosen].prod() * (advantage[:, None] * scores).mean(0)
    return total


@pytest.mark.parametrize("normalisation", ["none", "mean", "leave-one-out", "std"])
def test_multisets_give_what_all_groups_give(normalisation, policies) -> None:
    policy, _ = policies
    reward = torch.tensor([0.3, -1.0, 0.5, 2.0], dtype=torch.float64)
    found = expected_gradient(Groups.all(4, 4), policy, reward, normalisation)
    assert torch.allclose(found, by_brute_force(policy, reward, 4, normalisation), atol=1e-13)


def test_probabilities_of_groups_sum_to_one(policies) -> None:
    assert float(Groups.all(4, 8).probabilities(policies[0]).sum()) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_group_mean_scales_by_one_minus_one_over_g(size: int, policies) -> None:
    policy, reference = policies
    nothing = torch.zeros_like(policy)
    d = policy.log() - reference.log()
    true = policy * d - policy * (policy * d).sum()
    found = penalty_gradient(Groups.all(4, size), policy, reference, nothing, 0.1, "mean") / 0.1
    assert torch.allclose(found, (1 - 1 / size) * true, atol=1e-13)


@pytest.mark.parametrize("beta", [1e-3, 1e-2, 1e-1])
def test_standardised_the_advantage_does_not_know_beta(beta: float, policies) -> None:
    policy, reference = policies
    groups = Groups.all(4, 8)
    spread = math.sqrt(1 - float((policy**8).sum()))
    assert constant_reward_rms(groups, policy, reference, beta, "std") == pytest.approx(
        math.sqrt(7 / 8) * spread, rel=0.01
    )
    plain = constant_reward_rms(groups, policy, reference, beta, "mean")
    assert plain == pytest.approx(beta * constant_reward_rms(groups, policy, reference, 1.0, "mean"))


def test_a_published_size_the_coefficient_is_multiplied_by_more_than_a_thousand() -> None:
    outcomes = categorical(0.19, count=1, seed=3)
    policy, reference = outcomes.policy[0, 0, 0].exp(), outcomes.reference[0, 0, 0].exp()
    d = policy.log() - reference.log()
    deviation = float((policy * d.square()).sum() - (policy * d).sum() ** 2) ** 0.5
    groups, nothing = Groups.all(8, 8), torch.zeros_like(policy)
    true = policy * d - policy * (policy * d).sum()
    found = distance(penalty_gradient(groups, policy, reference, nothing, 1e-3, "std") / 1e-3, true)
    assert float(found.multiplier) * deviation / 0.63 == pytest.approx(
        1368, rel=0.15
    )  # measured for a deviation of 0.63 nats


def test_degenerate_share() -> None:
    policy = torch.tensor([0.5, 0.5], dtype=torch.float64)
    assert degenerate_share(policy, torch.tensor([0.0, 1.0]), 8) == pytest.approx(2 / 256)
    assert degenerate_share(policy, torch.tensor([1.0, 1.0]), 8) == pytest.approx(1)
