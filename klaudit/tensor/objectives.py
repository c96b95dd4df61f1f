"""The theory's objectives in PyTorch, to be differentiated and compared with what a configuration's samples give."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from klaudit.model import EstimatorName
from klaudit.tensor.estimators import estimate
from klaudit.tensor.outcomes import Outcomes
from klaudit.theory import Divergence, Objective

_Positional = Callable[[Tensor, Tensor, Tensor], Tensor]  # pi, ref, old log-probability tables (..., V) -> (...)


def _expected(log_sampler: Tensor, values: Tensor) -> Tensor:
    return (log_sampler.exp() * values).sum(-1)


DIVERGENCES: dict[Divergence, _Positional] = {
    "KL(pi||ref)": lambda pi, ref, old: _expected(pi, pi - ref),
    "KL(ref||pi)": lambda pi, ref, old: _expected(ref, ref - pi),
    "KL(pi_old||pi)": lambda pi, ref, old: _expected(old, old - pi),
    "KL(pi||pi_old)": lambda pi, ref, old: _expected(pi, pi - old),
    "TV(pi, ref)": lambda pi, ref, old: (pi.exp() - ref.exp()).abs().sum(-1) / 2,
    "chi2(pi||ref)": lambda pi, ref, old: torch.exp(2 * pi - ref).sum(-1) - 1,
    "E_pi[k2]": lambda pi, ref, old: _expected(pi, (pi - ref).square() / 2),
    "E_pi|d|": lambda pi, ref, old: _expected(pi, (pi - ref).abs()),
    "E_old[k2]": lambda pi, ref, old: _expected(old, (pi - ref).square() / 2),
    "E_old[k3]": lambda pi, ref, old: _expected(old, torch.exp(ref - pi) - 1 + pi - ref),
    "E_old|d|": lambda pi, ref, old: _expected(old, (pi - ref).abs()),
    "E_old[exp(d) - d]": lambda pi, ref, old: _expected(old, torch.exp(pi - ref) - pi + ref),
    "E_pi[frozen k2]": lambda pi, ref, old: _expected(pi, (old - ref).square() / 2),
    "E_pi[frozen k3]": lambda pi, ref, old: _expected(pi, torch.exp(ref - old) - 1 + old - ref),
    "E_pi[frozen |d|]": lambda pi, ref, old: _expected(pi, (old - ref).abs()),
    "E_pi[frozen exp(d) - d]": lambda pi, ref, old: _expected(pi, torch.exp(old - ref) - old + ref),
}


def per_position(objective: Objective) -> Callable[[Outcomes], Tensor]:
    """The objective at each position, summed over positions, with the prefixes' probabilities (the outcomes' weights) held fixed.

    At length 1 this is the objective itself; over sequences its gradient is the semi-gradient.
    """

    def value(outcomes: Outcomes) -> Tensor:
        tables = outcomes.policy, outcomes.reference, outcomes.old
        parts = [coefficient * DIVERGENCES[name](*tables) for name, coefficient in objective.parts]
        each = torch.stack(parts).sum(0) if parts else torch.zeros_like(outcomes.policy[..., 0])
        return (outcomes.weights * (each * outcomes.mask).sum(-1)).sum(-1)

    return value


def reverse_kl(outcomes: Outcomes) -> Tensor:
    """KL(pi||ref) of whole sequences (B,): the stated objective."""
    log_ratio = ((outcomes.log_pi - outcomes.log_ref) * outcomes.mask).sum(-1)
    return (outcomes.probabilities(outcomes.policy) * log_ratio).sum(-1)


def forward_kl(outcomes: Outcomes) -> Tensor:
    """KL(ref||pi) of whole sequences (B,)."""
    log_ratio = ((outcomes.log_ref - outcomes.log_pi) * outcomes.mask).sum(-1)
    return (outcomes.probabilities(outcomes.reference) * log_ratio).sum(-1)


def expected_sum(name: EstimatorName) -> Callable[[Outcomes], Tensor]:
    """E_pi of the sequence's summed estimator (B,), sampling differentiated too."""

    def value(outcomes: Outcomes) -> Tensor:
        each = estimate(name, outcomes.log_pi - outcomes.log_ref) * outcomes.mask
        return (outcomes.probabilities(outcomes.policy) * each.sum(-1)).sum(-1)

    return value
