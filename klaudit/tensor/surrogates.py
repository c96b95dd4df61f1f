"""What each configuration adds to the loss, per sampled sequence; differentiating it gives the gradient that the optimiser descends.

A surrogate maps outcomes with an attached policy table to one number per outcome (B, N).  Rewards enter as `+ credit * log pi`: they are
penalties, so descending them is subtracting them from the reward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from klaudit.model import EstimatorName
from klaudit.tensor.estimators import GradientForm, estimate, penalty
from klaudit.tensor.outcomes import Outcomes

Surrogate: TypeAlias = Callable[[Outcomes], Tensor]
Credit: TypeAlias = Literal["sequence-sum", "return-to-go", "own-token", "length-mean", "discounted"]
Correction: TypeAlias = Literal["none", "token-ratio", "sequence-ratio"]

DISCOUNT = 0.9


def loss(name: EstimatorName, form: GradientForm) -> Surrogate:
    """The token-summed penalty, differentiated."""

    def surrogate(outcomes: Outcomes) -> Tensor:
        each = penalty(name, form, outcomes.log_pi, outcomes.log_ref, outcomes.log_old)
        return (each * outcomes.mask).sum(-1)

    return surrogate


def full_loss(outcomes: Outcomes) -> Tensor:
    """The KL of the whole next-token distribution at each position, differentiated."""
    return (_positions_kl(outcomes) * outcomes.mask).sum(-1)


def reward(
    name: EstimatorName, credit: Credit = "sequence-sum", correction: Correction = "none", *, frozen: bool = False
) -> Surrogate:
    """The penalty as a deduction from the reward: detached, it weights the score function.

    `frozen` evaluates it at the old policy, as a rollout does; `correction` importance-weights the score.
    """

    def surrogate(outcomes: Outcomes) -> Tensor:
        own = outcomes.log_old if frozen else outcomes.log_pi.detach()
        value = estimate(name, own - outcomes.log_ref) * outcomes.mask
        return (_credited(value, credit, outcomes.mask) * _score(outcomes, correction) * outcomes.mask).sum(-1)

    return surrogate


def full_reward(outcomes: Outcomes) -> Tensor:
    """The whole distribution's KL at each position, rewarded as return-to-go."""
    value = _positions_kl(outcomes).detach() * outcomes.mask
    return (_credited(value, "return-to-go", outcomes.mask) * outcomes.log_pi * outcomes.mask).sum(-1)


def sequence_loss(name: EstimatorName) -> Surrogate:
    """The estimator of the sequence's summed log-ratio, differentiated."""

    def surrogate(outcomes: Outcomes) -> Tensor:
        return estimate(name, ((outcomes.log_pi - outcomes.log_ref) * outcomes.mask).sum(-1))

    return surrogate


def sequence_ratio_loss(name: EstimatorName, *, mean: bool) -> Surrogate:
    """The token-summed penalty times an attached ratio of the whole sequence: its tokens' product, or their geometric mean."""

    def surrogate(outcomes: Outcomes) -> Tensor:
        log_ratio = ((outcomes.log_pi - outcomes.log_old.detach()) * outcomes.mask).sum(-1)
        if mean:
            log_ratio = log_ratio / outcomes.mask.sum(-1)
        each = estimate(name, outcomes.log_pi - outcomes.log_ref)
        return torch.exp(log_ratio) * (each * outcomes.mask).sum(-1)

    return surrogate


def total(*parts: tuple[float, Surrogate]) -> Surrogate:
    """Several terms with their coefficients."""

    def surrogate(outcomes: Outcomes) -> Tensor:
        return torch.stack([coefficient * part(outcomes) for coefficient, part in parts]).sum(0)

    return surrogate


def _positions_kl(outcomes: Outcomes) -> Tensor:
    return (outcomes.policy.exp() * (outcomes.policy - outcomes.reference)).sum(-1)


def _credited(value: Tensor, credit: Credit, mask: Tensor) -> Tensor:
    """What each position's score is weighted with, from the masked per-token values (..., T)."""
    if credit == "own-token":
        return value
    if credit == "return-to-go":
        return value.flip(-1).cumsum(-1).flip(-1)
    if credit == "discounted":
        powers = DISCOUNT ** torch.arange(value.shape[-1], dtype=value.dtype, device=value.device)
        return (value * powers).flip(-1).cumsum(-1).flip(-1) / powers
    summed = value.sum(-1, keepdim=True).expand_as(value)
    return summed / mask.sum(-1, keepdim=True) if credit == "length-mean" else summed


def _score(outcomes: Outcomes, correction: Correction) -> Tensor:
    """log pi, or an importance ratio with the same kind of gradient, at each position (B, N, T)."""
    if correction == "none":
        return outcomes.log_pi
    log_ratio = outcomes.log_pi - outcomes.log_old
    if correction == "token-ratio":
        return torch.exp(log_ratio)
    whole = torch.exp((log_ratio * outcomes.mask).sum(-1, keepdim=True)).detach()
    return whole * outcomes.log_pi
