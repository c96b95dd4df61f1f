"""Every row of the theory as something that can be sampled."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from klaudit.tensor.estimators import GradientForm, estimate
from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import (
    Credit,
    Surrogate,
    full_loss,
    full_reward,
    loss,
    reward,
    sequence_loss,
    sequence_ratio_loss,
)
from klaudit.theory import TABLE, VARIANTS, Row

GROUP_VARIANTS = ("group-mean", "leave-one-out", "group-std")  # whole groups, not samples: see `groups`
RATIOS = ("importance-weighted", "detached-ratio", "sequence-mean-ratio", "sequence-ratio")

_FORMS: dict[str, GradientForm] = {
    "pathwise": "pathwise",
    "straight-through-k2": "straight-through-k2",
    "importance-weighted": "importance-weighted",
    "none": "none",
    "detached-ratio": "detached-ratio",
    "self-ratio": "self-ratio",
}
_CREDITS: dict[str, Credit] = {"length-mean": "length-mean", "no-return-to-go": "own-token", "discounted": "discounted"}


def sampled_rows() -> Iterator[Row]:
    """The rows of table and variants that concern single samples."""
    yield from TABLE.values()
    yield from (row for row in VARIANTS.values() if row.variant not in GROUP_VARIANTS)


def surrogate(row: Row) -> Surrogate:
    """What the configuration adds to the loss per sample.  Raises KeyError for the group variants."""
    if row.placement == "reward":
        if row.estimator == "full":
            return full_reward
        return reward(row.estimator, _CREDITS[row.variant] if row.variant else "sequence-sum")
    if row.variant == "sequence-sum":
        return sequence_loss(row.estimator)
    if row.variant in ("sequence-ratio", "sequence-mean-ratio"):
        return sequence_ratio_loss(row.estimator, mean=row.variant == "sequence-mean-ratio")
    if row.estimator == "full" and row.gradient == "pathwise":
        return full_loss
    return loss(
        "k1" if row.estimator in ("full", "unknown") else row.estimator, form(row)
    )  # a detached value: whichever


def form(row: Row) -> GradientForm:
    """How a per-token penalty in the loss carries its gradient."""
    return _FORMS[row.variant or row.gradient]


def stale_surrogate(row: Row, *, weighted: bool = True) -> Surrogate:
    """The same where tokens come from pi_old: a reward is frozen at rollout, and importance-weighted per token if `weighted`."""
    if row.placement == "loss" or row.estimator == "full":
        return surrogate(row)
    return reward(row.estimator, "return-to-go", "token-ratio" if weighted else "none", frozen=True)


def has_ratio(row: Row) -> bool:
    """Whether the configuration itself corrects for sampling from pi_old."""
    return (row.variant or row.gradient) in RATIOS


def value(row: Row, outcomes: Outcomes) -> Tensor:
    """The configuration's estimate of the KL of each outcome (B, N), whatever its gradient."""
    if row.placement == "loss":
        return surrogate(row)(outcomes).detach()
    if row.estimator == "full":
        return full_loss(outcomes).detach()
    each = estimate(row.estimator, outcomes.log_pi - outcomes.log_ref) * outcomes.mask
    total = each.sum(-1)
    return total / outcomes.mask.sum(-1) if row.variant == "length-mean" else total


def tabulated_weight(row: Row, d: Tensor) -> Tensor:
    """The theory's score weight on a grid of d."""
    assert row.weight is not None
    return torch.tensor([row.weight(x) for x in d.tolist()], dtype=d.dtype, device=d.device)
