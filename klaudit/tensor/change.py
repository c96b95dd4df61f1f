"""Before and after a fix: the score weight of the terms together and the exact bias of the gradient that they give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from klaudit.model import Term, Verdict
from klaudit.tensor.configurations import surrogate
from klaudit.tensor.gradients import distance, expected_gradient
from klaudit.tensor.groups import Groups, penalty_gradient
from klaudit.tensor.instances import autoregressive, categorical
from klaudit.tensor.laboratory import Bench
from klaudit.tensor.surrogates import total
from klaudit.theory import Row, Sum, judge_sum, look_up

TOKEN_KL, SEQUENCE_KL = 0.11, 0.2  # nats
_GROUP_SIZE = 8
_INSTANCES = 8


@dataclass(frozen=True, slots=True)
class Effect:
    """What a set of terms does, against beta*grad KL(pi||ref).

    `token_bias` and `sequence_bias` are medians of |g - g*| / |g*| over random policies; `multiplier` is the factor on the coefficient,
    over sequences.  None where the estimator is unknown or nothing is active.  `coefficient` is the beta that they are measured against.
    """

    score_weight: str
    verdict: Verdict
    coefficient: float | None
    token_bias: float | None
    sequence_bias: float | None
    multiplier: float | None

    def __str__(self) -> str:
        if self.token_bias is None or self.sequence_bias is None:
            return f"w(d) = {self.score_weight}: {self.verdict}"
        return (
            f"w(d) = {self.score_weight}: {self.verdict}; bias {_percent(self.token_bias)} per token, "
            f"{_percent(self.sequence_bias)} over sequences"
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A fix's effect."""

    before: Effect
    after: Effect

    @property
    def is_improvement(self) -> bool:
        """Whether the bias over sequences fell, or bias was never defined and the verdict is an unbiased one."""
        if self.before.sequence_bias is None or self.after.sequence_bias is None:
            return self.after.verdict == "unbiased"
        return self.after.sequence_bias < self.before.sequence_bias


def compare(before: Iterable[Term], after: Iterable[Term]) -> Change:
    """The effects of two lists of terms; inactive and metric-only ones are left out, a coefficient that is not known counts as 1."""
    return Change(effect(before), effect(after))


def effect(terms: Iterable[Term]) -> Effect:
    """The effect of the active terms together."""
    active = [
        term for term in terms if term.active is not False and term.placement != "metric" and term.coefficient != 0
    ]
    weighted = [(look_up(term.estimator, term.placement, term.gradient), term) for term in active]
    summed = judge_sum((row, term.coefficient, term.verdict) for row, term in weighted)
    if not active or any(row.verdict == "unknown" for row, _ in weighted):
        return Effect(summed.weight_text, summed.verdict, None, None, None, None)
    beta = _stated_coefficient(summed, active)
    if any(term.normalised_by_group_std for term in active):
        return _standardised(summed, beta)
    return _measured(
        summed, [(1.0 if term.coefficient is None else term.coefficient, row) for row, term in weighted], beta
    )


def _stated_coefficient(summed: Sum, terms: Sequence[Term]) -> float:
    """The beta that the terms mean: the sum's own where it is one, else the largest coefficient."""
    if summed.weight is not None and summed.weight.is_unbiased:
        return summed.weight["d"]
    return max((abs(term.coefficient) for term in terms if term.coefficient is not None), default=1.0)


def _measured(summed: Sum, terms: Sequence[tuple[float, Row]], beta: float) -> Effect:
    together = total(*((coefficient, surrogate(row)) for coefficient, row in terms))
    token, sequence = _benches()
    at_tokens = distance(expected_gradient(together, token.on_policy), beta * token.true)
    at_sequences = distance(expected_gradient(together, sequence.on_policy), beta * sequence.true)
    return Effect(
        summed.weight_text, summed.verdict, beta, float(at_tokens.bias.median()), float(at_sequences.bias.median()),
        float(at_sequences.multiplier.median()),
    )  # fmt: skip


def _standardised(summed: Sum, beta: float) -> Effect:
    """Inside a group's standard deviation, for the groups whose task reward is constant; an outcome stands for a sequence."""
    outcomes = _benches()[0].on_policy
    policy, reference = outcomes.policy[0, 0, 0].exp(), outcomes.reference[0, 0, 0].exp()
    groups = Groups.all(len(policy), _GROUP_SIZE)
    nothing_right = torch.zeros_like(policy)
    without = penalty_gradient(groups, policy, reference, nothing_right, beta, "none")
    away = distance(penalty_gradient(groups, policy, reference, nothing_right, beta, "std"), without)
    return Effect(summed.weight_text, summed.verdict, beta, float(away.bias), float(away.bias), float(away.multiplier))


@lru_cache(maxsize=1)
def _benches() -> tuple[Bench, Bench]:
    return (
        Bench.of(TOKEN_KL, categorical(TOKEN_KL, count=_INSTANCES)),
        Bench.of(SEQUENCE_KL, autoregressive(SEQUENCE_KL, count=_INSTANCES)),
    )


def _percent(bias: float) -> str:
    return "0" if bias < 1e-9 else f"{bias:.1%}" if bias < 10 else f"{bias:.0f}x"
