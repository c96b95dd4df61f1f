"""The reference estimators in PyTorch: value and gradient, for any dtype, device and shape.

All log-probabilities are those of sampled tokens, in nats; the reference and the old policy carry no gradient.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from klaudit.model import EstimatorName

GradientForm: TypeAlias = Literal[
    "pathwise", "straight-through-k2", "importance-weighted", "none", "detached-ratio", "self-ratio"
]


def estimate(name: EstimatorName, d: Tensor) -> Tensor:
    """The value k(d), d = log pi - log ref.  Near d = 0 k3 is computed by expm1, without cancellation.  Raises KeyError for others."""
    if name == "k1":
        return d
    if name == "k2":
        return d.square() / 2
    if name == "k3":
        return torch.expm1(-d) + d
    if name == "abs":
        return d.abs()
    if name == "reversed-k3":
        return torch.expm1(d) - d
    raise KeyError(name)


def penalty(
    name: EstimatorName, form: GradientForm, log_pi: Tensor, log_ref: Tensor, log_old: Tensor | None = None
) -> Tensor:
    """The penalty of each token as a loss would hold it, with the gradient of `form`.

    The forms with a ratio need `log_old`; where it is missing the tokens are taken to be sampled from pi itself.
    """
    k = estimate(name, log_pi - log_ref.detach())
    if form == "pathwise":
        return k
    if form == "none":
        return k.detach()
    if form == "straight-through-k2":
        k2 = estimate("k2", log_pi - log_ref.detach())
        return k.detach() + k2 - k2.detach()
    if form == "self-ratio":
        return torch.exp(log_pi - log_pi.detach()) * k
    old = log_pi.detach() if log_old is None else log_old.detach()
    ratio = torch.exp(log_pi - old)
    return (ratio.detach() if form == "detached-ratio" else ratio) * k


def score_weights(name: EstimatorName, form: GradientForm, d: Tensor) -> Tensor:
    """The pathwise score weight w(d) of each sample, from autograd, on-policy; the shape of `d`."""
    log_pi = d.detach().clone().requires_grad_()
    total = penalty(name, form, log_pi, torch.zeros_like(d)).sum()
    if not total.requires_grad:
        return torch.zeros_like(d)
    (slope,) = torch.autograd.grad(total, log_pi)
    return slope
