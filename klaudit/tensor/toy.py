"""The minimal model of "A Comedy of Estimators" (arXiv 2512.21852): a binary autoregressive policy and reference.

The paper's own parametrisation was not available to us; ours is P(y_t = 1 | y_<t) = sigmoid(a + b * (2 * mean(y_<t) - 1)), the mean of
nothing being 1/2, with parameters (a, b).  Samples repeat its protocol: rounds of sequences, each round giving one gradient.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.outcomes import Outcomes


@dataclass(frozen=True, slots=True)
class ToySetting:
    """A policy and a reference, as (a, b), over sequences of `length` tokens."""

    name: str
    policy: tuple[float, float]
    reference: tuple[float, float]
    length: int


CLOSE, FAR = ((0.3, 0.8), (0.0, 0.5)), ((0.5, 1.5), (-0.3, 0.2))
CLOSE_5, FAR_5 = ToySetting("close, T=5", *CLOSE, 5), ToySetting("far, T=5", *FAR, 5)
CLOSE_20, FAR_20 = ToySetting("close, T=20", *CLOSE, 20), ToySetting("far, T=20", *FAR, 20)


def exact_kl(setting: ToySetting) -> tuple[float, Tensor]:
    """KL(pi||ref) of whole sequences and its gradient (2,) with respect to (a, b), by dynamic programming over the number of ones.

    Independent of any sampled or enumerated sequence, and feasible at every length.
    """
    theta = torch.tensor(setting.policy, dtype=torch.float64, requires_grad=True)
    phi = torch.tensor(setting.reference, dtype=torch.float64)
    occupancy = torch.ones(1, dtype=torch.float64)  # P(number of ones so far)
    total = torch.zeros((), dtype=torch.float64)
    for position in range(setting.length):
        ones = torch.arange(position + 1, dtype=torch.float64)
        lean = 2 * ones / position - 1 if position else torch.zeros(1, dtype=torch.float64)
        logit, ref_logit = theta[0] + theta[1] * lean, phi[0] + phi[1] * lean
        one = torch.sigmoid(logit)
        sides = (one, torch.sigmoid(ref_logit)), (1 - one, torch.sigmoid(-ref_logit))
        total = total + (occupancy * torch.stack([p * (p / q).log() for p, q in sides]).sum(0)).sum()
        nothing = torch.zeros(1, dtype=torch.float64)
        occupancy = torch.cat([occupancy * (1 - one), nothing]) + torch.cat([nothing, occupancy * one])
    (gradient,) = torch.autograd.grad(total, theta)
    return total.item(), gradient


def enumerated(setting: ToySetting) -> Outcomes:
    """Every sequence (N = 2^length) with its probability, on-policy (B = 1)."""
    if setting.length > 14:
        raise ValueError(f"2^{setting.length} sequences are too many to enumerate")
    tokens = torch.tensor(list(itertools.product((0, 1), repeat=setting.length)))
    outcomes = _outcomes(setting, tokens[None])
    return outcomes.on_policy()


def drawn(setting: ToySetting, rounds: int, sequences: int, generator: torch.Generator) -> Outcomes:
    """`rounds` batches (B) of `sequences` sequences (N) sampled from the policy, equally weighted."""
    device = generator.device
    a, b = setting.policy
    tokens = torch.zeros(rounds, sequences, setting.length, dtype=torch.int64, device=device)
    ones = torch.zeros(rounds, sequences, dtype=torch.float64, device=device)
    for position in range(setting.length):
        lean = 2 * ones / position - 1 if position else torch.zeros_like(ones)
        uniform = torch.rand(rounds, sequences, generator=generator, dtype=torch.float64, device=device)
        drawn_token = uniform < torch.sigmoid(a + b * lean)
        tokens[..., position] = drawn_token
        ones += drawn_token
    return _outcomes(setting, tokens)


def _outcomes(setting: ToySetting, tokens: Tensor) -> Outcomes:
    ones_before = (tokens.cumsum(-1) - tokens).double()
    position = torch.arange(setting.length, device=tokens.device)
    lean = torch.where(position > 0, 2 * ones_before / position.clamp(min=1) - 1, 0.0)
    features = torch.stack([torch.ones_like(lean), lean], -1)

    def table(theta: tuple[float, float]) -> Tensor:
        logit = features @ torch.tensor(theta, dtype=torch.float64, device=tokens.device)
        return torch.nn.functional.logsigmoid(torch.stack([-logit, logit], -1))

    policy = table(setting.policy)
    one = policy[..., 1].exp()
    slope = torch.stack([-one, 1 - one], -1)  # d log P(y) / d logit
    return Outcomes(
        tokens=tokens,
        mask=torch.ones_like(lean),
        policy=policy,
        reference=table(setting.reference),
        old=policy,
        jacobian=slope[..., :, None] * features[..., None, :],
        weights=torch.full(tokens.shape[:2], 1 / tokens.shape[1], dtype=torch.float64, device=tokens.device),
    )
