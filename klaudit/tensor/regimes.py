"""The exact rows of the verification table, one function a sampling regime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.model import Verdict
from klaudit.tensor.configurations import has_ratio, stale_surrogate, surrogate, value
from klaudit.tensor.gradients import distance, moments
from klaudit.tensor.groups import Groups, Normalisation, penalty_gradient
from klaudit.tensor.inner_steps import Bandit, Loss, in_loss, penalty_distances, rewarded
from klaudit.tensor.instances import categorical
from klaudit.tensor.laboratory import Bench, Laboratory
from klaudit.tensor.rows import VerifyRow, descends, measured
from klaudit.tensor.surrogates import Surrogate, total
from klaudit.theory import TABLE, VARIANTS, Row, both_placements, judge_sum

_ROWS = {row.id: row for row in (*TABLE.values(), *VARIANTS.values())}
_PER_TOKEN = (
    "k1-in-reward", "k2-in-loss", "k3-in-loss-straight-through-k2", "full-in-loss",
    "k1-in-loss", "k3-in-loss", "abs-in-loss", "reversed-k3-in-loss",
    "k2-in-reward", "k3-in-reward", "abs-in-reward", "reversed-k3-in-reward", "full-in-reward",
)  # fmt: skip
_WITH_RATIO = (
    "k1-in-loss-importance-weighted", "k2-in-loss-importance-weighted", "k3-in-loss-importance-weighted",
    "abs-in-loss-importance-weighted", "k2-in-loss-detached-ratio", "k3-in-loss-detached-ratio",
)  # fmt: skip
_WHOLE_SEQUENCE = (
    "k2-in-loss-sequence-sum", "k3-in-loss-sequence-ratio", "k3-in-loss-sequence-mean-ratio", "k3-in-loss-sequence-sum",
    "k1-in-reward-no-return-to-go", "k1-in-reward-discounted", "k1-in-reward-length-mean",
)  # fmt: skip
_STALE_REWARDS = ("k1-in-reward", "k3-in-reward")
GROUP_SIZE = 8
GROUP_BETA = 1e-3
_SUCCESSES = (0.1, 0.5, 1.0)
INNER_STEPS = (0, 1, 3, 7)


@dataclass(frozen=True, slots=True)
class _Regime:
    name: str
    stale: bool
    benches: tuple[Bench, ...]
    sequences: bool


def single_tokens(laboratory: Laboratory) -> Iterator[VerifyRow]:
    """On-policy, and from a stale policy without and with importance weights."""
    yield from _sampled((*_PER_TOKEN, *_WITH_RATIO[:4]), _Regime("token, on-policy", False, laboratory.tokens, False))
    stale = _Regime("token, stale policy", True, laboratory.tokens, False)
    yield from _sampled([name for name in _PER_TOKEN if name in ("k1-in-loss", "k2-in-loss", "k3-in-loss")], stale)
    weighted = _Regime("token, stale policy, importance-weighted", True, laboratory.tokens, False)
    yield from _sampled((*_STALE_REWARDS, *_WITH_RATIO), weighted)


def sequences(laboratory: Laboratory) -> Iterator[VerifyRow]:
    """The same over whole sequences, where a token-summed loss gives only the semi-gradient."""
    regime = _Regime("sequence, on-policy", False, laboratory.sequences, True)
    names = [name for name in _PER_TOKEN if not name.startswith("reversed")]
    yield from _sampled((*names, "k3-in-loss-importance-weighted", *_WHOLE_SEQUENCE), regime)
    yield from _both(regime)
    yield from _sampled(
        ("k1-in-loss", "k2-in-loss", "k3-in-loss"), _Regime("sequence, stale policy", True, laboratory.sequences, True)
    )
    weighted = _Regime("sequence, stale policy, importance-weighted", True, laboratory.sequences, True)
    yield from _sampled((*_STALE_REWARDS, "k3-in-loss-importance-weighted", "k3-in-loss-sequence-ratio"), weighted)


def groups(laboratory: Laboratory, seed: int) -> Iterator[VerifyRow]:
    """Rewarded k1 compared within groups: by their mean, and standardised, by the share of right answers."""
    outcomes = categorical(0.2, count=1, seed=seed).to(laboratory.device, laboratory.dtype)
    policy, reference = outcomes.policy[0, 0, 0].exp(), outcomes.reference[0, 0, 0].exp()
    every = Groups.all(len(policy), GROUP_SIZE, laboratory.device, laboratory.dtype)
    d = policy.log() - reference.log()
    true = policy * d - policy * (policy * d).sum()
    kl = float((policy * d).sum())

    def row_of(variant: str, normalisation: Normalisation, task: Tensor, regime: str) -> VerifyRow:
        row = _ROWS[f"k1-in-reward-{variant}"]
        descended = penalty_gradient(every, policy, reference, task, GROUP_BETA, normalisation) / GROUP_BETA
        return measured(
            row, regime, kl, distance(descended[None], true[None]), descends=row.descends, verdict=row.verdict
        )

    nothing_right = torch.zeros_like(policy)
    yield row_of("group-mean", "mean", nothing_right, f"group of {GROUP_SIZE}")
    yield row_of("leave-one-out", "leave-one-out", nothing_right, f"group of {GROUP_SIZE}")
    for success in _SUCCESSES:
        task = _task_reward(policy, success)
        share = float((policy * task).sum())
        yield row_of("group-std", "std", task, f"group of {GROUP_SIZE}, {share:.0%} right, beta = {GROUP_BETA:g}")


def inner_steps(laboratory: Laboratory, seed: int) -> Iterator[VerifyRow]:
    """Several steps on one rollout with PPO's clip: the penalty's part of the gradient at some of them."""
    bandit = Bandit.drawn(seed=seed).to(laboratory.device, laboratory.dtype)
    losses: tuple[tuple[str, str, Loss], ...] = (
        ("k1-in-reward", "frozen, clipped", rewarded("k1", clip=True)),
        ("k1-in-reward", "frozen, not clipped", rewarded("k1", clip=False)),
        ("k2-in-loss", "", in_loss("k2", "pathwise")),
        ("k3-in-loss", "", in_loss("k3", "pathwise")),
        ("k3-in-loss-importance-weighted", "", in_loss("k3", "importance-weighted")),
        ("k1-in-loss", "", in_loss("k1", "pathwise")),
    )
    found = [penalty_distances(loss, bandit) for _, _, loss in losses]
    for step in INNER_STEPS:
        for (name, how, _), distances in zip(losses, found, strict=True):
            row, stale = _ROWS[name], step > 0
            yield measured(
                row, f"PPO, inner step {step}", None, distances[step], descends=_descends(row, stale, False),
                verdict=_verdict(row, stale, distances[step].bias, laboratory.tolerance),
                configuration=f"{row.id} ({how})" if how else "",
            )  # fmt: skip


def _sampled(names: tuple[str, ...] | list[str], regime: _Regime) -> Iterator[VerifyRow]:
    for name in names:
        row = _ROWS[name]
        configuration = stale_surrogate(row) if regime.stale else surrogate(row)
        for bench in regime.benches:
            yield _measured(row, configuration, regime, bench)


def _both(regime: _Regime) -> Iterator[VerifyRow]:
    for in_reward, in_loss_row, objective in both_placements():
        verdict = judge_sum([(row, 1.0, row.verdict) for row in (in_reward, in_loss_row)]).verdict
        for bench in regime.benches:
            both = total((1.0, surrogate(in_reward)), (1.0, surrogate(in_loss_row)))
            found = moments(both, bench.on_policy)
            yield measured(
                in_reward, regime.name, bench.kl, distance(found.mean, bench.true), descends=str(objective), verdict=verdict,
                variance_ratio=found.variance / bench.k1_variance, configuration=f"{in_reward.estimator}-in-both",
            )  # fmt: skip


def _measured(row: Row, configuration: Surrogate, regime: _Regime, bench: Bench) -> VerifyRow:
    outcomes = bench.off_policy if regime.stale else bench.on_policy
    found = moments(configuration, outcomes)
    away = distance(found.mean, bench.true)
    estimates = (outcomes.weights * value(row, outcomes)).sum(-1)
    return measured(
        row, regime.name, bench.kl, away, descends=_descends(row, regime.stale, regime.sequences),
        verdict=_verdict(row, regime.stale, away.bias, 1e-8), value_bias=estimates / bench.kl - 1,
        variance_ratio=found.variance / bench.k1_variance,
    )  # fmt: skip


def _descends(row: Row, stale: bool, over_sequences: bool) -> str:
    objective = descends(row, stale=stale)
    whole = row.variant in ("sequence-sum", "sequence-ratio") or row.placement == "reward"
    return f"{objective} (semi-gradient)" if over_sequences and not whole and objective != "nothing" else objective


def _verdict(row: Row, stale: bool, bias: Tensor, exact: float) -> Verdict:
    """The row's own; off-policy a verdict of unbiasedness holds only where the ratio makes it so, as measured."""
    if not stale or row.verdict not in ("unbiased", "unbiased-per-token"):
        return row.verdict
    if float(bias.max()) <= exact or (has_ratio(row) and row.verdict == "unbiased-per-token"):
        return row.verdict
    return "biased"


def _task_reward(policy: Tensor, success: float) -> Tensor:
    """Reward 1 for the least likely outcomes whose probabilities add up to about `success`."""
    order = policy.argsort()
    middle = policy[order].cumsum(0) - policy[order] / 2
    reward = torch.zeros_like(policy)
    reward[order[middle <= success]] = 1.0
    return reward
