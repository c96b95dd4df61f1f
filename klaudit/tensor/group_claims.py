"""The theory's statements on rewards compared within a group, computed over all groups."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from klaudit.tensor.claims import Claim
from klaudit.tensor.gradients import distance
from klaudit.tensor.groups import Groups, constant_reward_rms, penalty_gradient
from klaudit.tensor.instances import categorical
from klaudit.tensor.laboratory import Laboratory

_SIZES = (2, 4, 8)
_BETAS = (1e-3, 1e-2, 1e-1)


def group_claims(laboratory: Laboratory, seed: int) -> Iterator[Claim]:
    """Baselines scale by 1 - 1/G or not at all; standardisation takes the coefficient out of the penalty."""
    outcomes = categorical(0.2, count=1, seed=seed).to(laboratory.device, laboratory.dtype)
    policy, reference = outcomes.policy[0, 0, 0].exp(), outcomes.reference[0, 0, 0].exp()
    nothing_right = torch.zeros_like(policy)
    d = policy.log() - reference.log()
    true = policy * d - policy * (policy * d).sum()
    for size in _SIZES:
        groups = Groups.all(len(policy), size, laboratory.device, laboratory.dtype)
        by_mean = distance(
            penalty_gradient(groups, policy, reference, nothing_right, 1.0, "mean"), (1 - 1 / size) * true
        )
        by_others = distance(penalty_gradient(groups, policy, reference, nothing_right, 1.0, "leave-one-out"), true)
        yield Claim(
            "k1-in-reward-group-mean", f"1 - 1/{size} times KL(pi||ref)", float(by_mean.bias), laboratory.tolerance
        )
        yield Claim(
            "k1-in-reward-leave-one-out",
            f"exactly KL(pi||ref), groups of {size}",
            float(by_others.bias),
            laboratory.tolerance,
        )
    groups = Groups.all(len(policy), _SIZES[-1], laboratory.device, laboratory.dtype)
    all_alike = float((policy**groups.size).sum())  # no spread, so no advantage
    expected = math.sqrt((groups.size - 1) / groups.size * (1 - all_alike))
    for beta in _BETAS:
        off = abs(constant_reward_rms(groups, policy, reference, beta, "std") / expected - 1)
        says = f"rescaled: at constant task reward and beta = {beta:g} the advantage is a z-score, whatever beta"
        yield Claim(
            "k1-in-reward-group-std", says, off, 0.05
        )  # the little that is added to the deviation shows at small beta
    multiplier = distance(
        penalty_gradient(groups, policy, reference, nothing_right, _BETAS[0], "std") / _BETAS[0], true
    ).multiplier
    yield Claim(
        "k1-in-reward-group-std", "rescaled: the effective coefficient is off", float(multiplier), 10.0, at_least=True
    )
