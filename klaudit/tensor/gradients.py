"""Expected gradients, their variance, and how far they are from the stated one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import Surrogate


@dataclass(frozen=True, slots=True)
class Moments:
    """The expected gradient (B, P) and the trace of the covariance (B,) of a single sample's gradient."""

    mean: Tensor
    variance: Tensor


@dataclass(frozen=True, slots=True)
class Distance:
    """How a gradient differs from the true one, per instance (B,).

    `bias` is |g - g*| / |g*|, `multiplier` the projection <g, g*> / |g*|^2: the factor by which the coefficient is effectively scaled.
    `cosine` and `angle` (degrees) are NaN where the gradient vanishes.
    """

    norm_ratio: Tensor
    cosine: Tensor
    angle: Tensor
    bias: Tensor
    multiplier: Tensor


def sample_gradients(surrogate: Surrogate, outcomes: Outcomes) -> Tensor:
    """Each outcome's gradient with respect to the parameters (B, N, P)."""
    return (_by_entry(surrogate, outcomes).unsqueeze(-1) * outcomes.jacobian).sum((2, 3))


def expected_gradient(surrogate: Surrogate, outcomes: Outcomes) -> Tensor:
    """The gradient's mean (B, P) under the outcomes' weights: exact where all outcomes are enumerated."""
    weighted = _by_entry(surrogate, outcomes) * outcomes.weights[..., None, None]
    return _contracted(weighted, outcomes)


def moments(surrogate: Surrogate, outcomes: Outcomes) -> Moments:
    """Mean and variance of a sample's gradient under the outcomes' weights."""
    each = sample_gradients(surrogate, outcomes)
    mean = (outcomes.weights[..., None] * each).sum(1)
    spread = (each - mean[:, None]).square().sum(-1)
    return Moments(mean, (outcomes.weights * spread).sum(-1))


def objective_gradient(objective: Callable[[Outcomes], Tensor], outcomes: Outcomes) -> Tensor:
    """The gradient (B, P) of a function of the policy table that gives one number an instance (B,)."""
    attached = outcomes.attached()
    value = objective(attached)
    if not value.requires_grad:
        return torch.zeros(len(value), outcomes.jacobian.shape[-1], dtype=value.dtype, device=value.device)
    (by_entry,) = torch.autograd.grad(value.sum(), attached.policy)
    return _contracted(by_entry, outcomes)


def _by_entry(surrogate: Surrogate, outcomes: Outcomes) -> Tensor:
    """The derivative of each outcome's surrogate with respect to its own log-probability table (B, N, T, V)."""
    attached = outcomes.attached()
    per_outcome = surrogate(attached)
    if not per_outcome.requires_grad:
        return torch.zeros_like(outcomes.policy)
    (by_entry,) = torch.autograd.grad(per_outcome.sum(), attached.policy)
    return by_entry


def _contracted(by_entry: Tensor, outcomes: Outcomes) -> Tensor:
    """From log-probabilities to parameters (B, P), summed over outcomes."""
    return torch.bmm(by_entry.flatten(1).unsqueeze(1), outcomes.jacobian.flatten(1, -2)).squeeze(1)


def distance(gradient: Tensor, true: Tensor) -> Distance:
    """Compare gradients (..., P) with true ones (..., P), which must not vanish."""
    norm, true_norm = gradient.norm(dim=-1), true.norm(dim=-1)
    product = (gradient * true).sum(-1)
    vanishing = norm <= 1e-12 * true_norm
    cosine = torch.where(vanishing, torch.nan, product / (norm * true_norm)).clamp(-1, 1)
    return Distance(
        norm_ratio=norm / true_norm,
        cosine=cosine,
        angle=torch.rad2deg(torch.acos(cosine)),
        bias=(gradient - true).norm(dim=-1) / true_norm,
        multiplier=product / true_norm.square(),
    )
