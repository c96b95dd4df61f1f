"""Rewards compared within a group of samples of one prompt: baselines and standardisation, computed exactly.

A group of G draws from V outcomes is a multiset; all of them are enumerated with their multinomial probabilities (6435 for V = G = 8).
An outcome stands for a whole sequence: its K1 is the sequence's sum of d.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

Normalisation: TypeAlias = Literal["none", "mean", "leave-one-out", "std"]

_EPSILON = 1e-6  # added to the standard deviation, as the frameworks that standardise do


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups of `size` draws from V outcomes: each outcome's count in each group (M, V), and multinomial coefficients (M,)."""

    size: int
    counts: Tensor
    coefficients: Tensor

    @classmethod
    def all(
        cls, outcomes: int, size: int, device: torch.device | None = None, dtype: torch.dtype = torch.float64
    ) -> Groups:
        every = itertools.combinations_with_replacement(range(outcomes), size)
        counts = torch.tensor(
            [[group.count(outcome) for outcome in range(outcomes)] for group in every], dtype=torch.float64
        )
        coefficients = torch.exp(math.lgamma(size + 1) - torch.lgamma(counts + 1).sum(-1))
        return cls(size, counts.to(device, dtype), coefficients.to(device, dtype))

    def probabilities(self, policy: Tensor) -> Tensor:
        """The probability (M,) of each group under outcome probabilities (V,)."""
        return self.coefficients * torch.prod(policy**self.counts, -1)


def expected_gradient(groups: Groups, policy: Tensor, reward: Tensor, normalisation: Normalisation) -> Tensor:
    """E[mean over the group of advantage * grad log pi] with respect to the logits (V,): what is ascended, exactly.

    `policy` and `reward` are (V,): outcome probabilities and the reward with the penalty already deducted.
    """
    size, counts = groups.size, groups.counts
    advantage = reward.expand_as(counts)
    mean = (counts @ reward / size)[:, None]
    if normalisation in ("mean", "std"):
        advantage = advantage - mean
    if normalisation == "leave-one-out":
        advantage = (advantage - mean) * size / (size - 1)
    if normalisation == "std":
        variance = (counts * (reward - mean).square()).sum(-1, keepdim=True) / (size - 1)
        advantage = advantage / (variance.sqrt() + _EPSILON)
    weights = torch.einsum("m,mv->v", groups.probabilities(policy), counts / size * advantage)
    return weights - policy * weights.sum()  # sum over v of weights(v) * (e_v - policy)


def penalty_gradient(
    groups: Groups, policy: Tensor, reference: Tensor, task_reward: Tensor, beta: float, normalisation: Normalisation
) -> Tensor:
    """What a penalty beta*d in the reward adds to the descended gradient (V,): the gradient with it less that without it.

    Without normalisation this is beta*grad KL(pi||ref).
    """
    d = policy.log() - reference.log()
    with_penalty = expected_gradient(groups, policy, task_reward - beta * d, normalisation)
    return expected_gradient(groups, policy, task_reward, normalisation) - with_penalty


def degenerate_share(policy: Tensor, task_reward: Tensor, size: int) -> float:
    """The share of groups whose task reward is constant."""
    return sum(float(policy[task_reward == value].sum()) ** size for value in set(task_reward.tolist()))


def constant_reward_rms(
    groups: Groups, policy: Tensor, reference: Tensor, beta: float, normalisation: Normalisation
) -> float:
    """The root mean square advantage where the task reward is constant, so that only the penalty differs."""
    reward = -beta * (policy.log() - reference.log())
    mean = (groups.counts @ reward / groups.size)[:, None]
    advantage = reward - mean
    if normalisation == "std":
        variance = (groups.counts * advantage.square()).sum(-1, keepdim=True) / (groups.size - 1)
        advantage = advantage / (variance.sqrt() + _EPSILON)
    each = (groups.counts / groups.size * advantage.square()).sum(-1)
    return math.sqrt((groups.probabilities(policy) * each).sum().item())
