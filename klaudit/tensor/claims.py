"""Every statement of the theory, computed: where one does not hold, theory and tensors have drifted apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.configurations import (
    GROUP_VARIANTS,
    form,
    sampled_rows,
    stale_surrogate,
    surrogate,
    tabulated_weight,
)
from klaudit.tensor.estimators import estimate, score_weights
from klaudit.tensor.gradients import expected_gradient, objective_gradient, sample_gradients
from klaudit.tensor.laboratory import Bench, Laboratory
from klaudit.tensor.objectives import expected_sum, forward_kl, per_position, reverse_kl
from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import Surrogate, total
from klaudit.theory import Clamp, Row, both_placements, clamped, judge_sum

VISIBLE = 1e-3  # a bias that theory calls one is at least this large, relative to the true gradient


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement about one configuration: `residual` is what should vanish, or exceed `bound` where `at_least`."""

    about: str
    says: str
    residual: float
    bound: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.residual >= self.bound if self.at_least else self.residual <= self.bound  # a NaN holds neither way


def theory_claims(laboratory: Laboratory) -> Iterator[Claim]:
    """All statements on rows, their sums and clamps that concern single samples."""
    for row in sampled_rows():
        yield from _weight_claims(row, laboratory)
        yield from _objective_claims(row, laboratory)
        yield from _sequence_claims(row, laboratory)
        yield from verdict_claims(row.id, row.verdict, surrogate(row), laboratory)
    yield from _both_placement_claims(laboratory)
    yield from _clamp_claims(laboratory)


def _weight_claims(row: Row, laboratory: Laboratory) -> Iterator[Claim]:
    if row.weight is None or row.estimator in ("full", "unknown") or row.variant in GROUP_VARIANTS:
        return
    d = _grid(laboratory)
    if row.placement == "reward":
        seen = estimate(row.estimator, d)
    else:
        seen = score_weights(row.estimator, form(row), d)
    yield Claim(row.id, f"w(d) = {row.weight}", _relative(seen, tabulated_weight(row, d)), laboratory.tolerance)


def _objective_claims(row: Row, laboratory: Laboratory) -> Iterator[Claim]:
    if row.objective is not None:
        residual = max(
            _residual(surrogate(row), objective_gradient(per_position(row.objective), outcomes), outcomes)
            for outcomes in (bench.on_policy for bench in laboratory.tokens)
        )
        yield Claim(row.id, f"per token, on-policy, descends {row.objective}", residual, laboratory.tolerance)
    if row.stale is not None:
        residual = max(
            _residual(stale_surrogate(row), objective_gradient(per_position(row.stale), outcomes), outcomes)
            for outcomes in (bench.off_policy for bench in laboratory.tokens)
        )
        yield Claim(row.id, f"per token, off-policy, descends {row.stale}", residual, laboratory.tolerance)


def _sequence_claims(row: Row, laboratory: Laboratory) -> Iterator[Claim]:
    """Token-summed losses give the semi-gradient of their objective; whole-sequence forms the gradient of the sequences' divergence."""
    on_policy = [bench.on_policy for bench in laboratory.sequences]
    off_policy = [bench.off_policy for bench in laboratory.sequences]
    if row.variant in ("sequence-sum", "sequence-ratio"):
        whole = forward_kl if row.estimator == "k3" and row.variant == "sequence-sum" else reverse_kl
        samples = [*on_policy, *off_policy] if row.variant == "sequence-ratio" else on_policy
        residual = max(_residual(surrogate(row), objective_gradient(whole, outcomes), outcomes) for outcomes in samples)
        yield Claim(
            row.id, f"over sequences, descends {row.descends} of whole sequences", residual, laboratory.tolerance
        )
    elif row.objective is not None and (row.placement == "loss" or row.variant == "no-return-to-go"):
        residual = max(
            _residual(surrogate(row), objective_gradient(per_position(row.objective), outcomes), outcomes)
            for outcomes in on_policy
        )
        yield Claim(row.id, f"over sequences, the semi-gradient of {row.objective}", residual, laboratory.tolerance)


def verdict_claims(
    about: str, verdict: str, configuration: Surrogate, laboratory: Laboratory, beta: float = 1.0
) -> Iterator[Claim]:
    """What a verdict says about the bias with respect to beta*KL(pi||ref), per token and over sequences."""
    token = _worst_bias(configuration, laboratory.tokens, beta)
    sequence = _worst_bias(configuration, laboratory.sequences, beta)
    exact = laboratory.tolerance
    if verdict in ("unbiased", "unbiased-per-token"):
        yield Claim(about, f"{verdict}: no bias per token", token, exact)
    if verdict == "unbiased":
        yield Claim(about, "unbiased: no bias over sequences", sequence, exact)
    elif verdict == "unbiased-per-token":
        yield Claim(about, "unbiased-per-token: a bias over sequences", sequence, VISIBLE, at_least=True)
    elif verdict == "biased":
        yield Claim(about, "biased: a bias per token or over sequences", max(token, sequence), VISIBLE, at_least=True)
    elif verdict in ("no-regularisation", "no-gradient"):
        expected = max(
            float(expected_gradient(configuration, bench.on_policy).abs().max()) for bench in laboratory.tokens
        )
        each = max(float(sample_gradients(configuration, bench.on_policy).abs().max()) for bench in laboratory.tokens)
        yield Claim(about, f"{verdict}: no expected gradient", expected, exact)
        if verdict == "no-regularisation":
            yield Claim(about, "no-regularisation: but noise from each sample", each, VISIBLE, at_least=True)
        else:
            yield Claim(about, "no-gradient: nothing from any sample", each, 0.0)


def _both_placement_claims(laboratory: Laboratory) -> Iterator[Claim]:
    """The product rule, over sequences, and the verdict on the sum."""
    for in_reward, in_loss, objective in both_placements():
        both = total((1.0, surrogate(in_reward)), (1.0, surrogate(in_loss)))
        about = f"{in_reward.id} + {in_loss.id}"
        residual = max(
            _residual(both, objective_gradient(expected_sum(in_reward.estimator), outcomes), outcomes)
            for outcomes in (bench.on_policy for bench in laboratory.sequences)
        )
        yield Claim(about, f"over sequences, descends {objective}", residual, laboratory.tolerance)
        verdict = judge_sum([(row, 1.0, row.verdict) for row in (in_reward, in_loss)]).verdict
        yield from verdict_claims(about, verdict, both, laboratory)
    rewarded, lost = (
        next(row for row in sampled_rows() if row.id == name) for name in ("full-in-reward", "full-in-loss")
    )
    verdict = judge_sum([(row, 1.0, row.verdict) for row in (rewarded, lost)]).verdict
    both = total((1.0, surrogate(rewarded)), (1.0, surrogate(lost)))
    yield from verdict_claims(f"{rewarded.id} + {lost.id}", verdict, both, laboratory)


def _clamp_claims(laboratory: Laboratory) -> Iterator[Claim]:
    d = _grid(laboratory) * 3
    for clamp in (
        Clamp("value", -10, 10),
        Clamp("value", 0.5, 3),
        Clamp("log-ratio", -5, 5),
        Clamp("log-ratio", high=4),
    ):
        for name in ("k1", "k2", "k3", "abs"):
            yield _clamp_claim(name, clamp, d, laboratory)
    for clamp in (Clamp("exponent", high=10), Clamp("exponent", -4, 4)):
        for name in ("k3", "reversed-k3"):
            yield _clamp_claim(name, clamp, d, laboratory)


def _clamp_claim(name: str, clamp: Clamp, d: Tensor, laboratory: Laboratory) -> Claim:
    estimator = next(row.estimator for row in sampled_rows() if row.estimator == name)
    leaf = d.clone().requires_grad_()
    bounds = {"min": clamp.low, "max": clamp.high}
    if clamp.target == "value":
        value = estimate(estimator, leaf).clamp(**bounds)
    elif clamp.target == "log-ratio":
        value = estimate(estimator, leaf.clamp(**bounds))
    else:
        sign = -1 if name == "k3" else 1
        value = torch.exp((sign * leaf).clamp(**bounds)) - 1 - sign * leaf
    (slope,) = torch.autograd.grad(value.sum(), leaf)
    residual = 0.0
    for placement, seen in (("loss", slope), ("reward", value.detach())):
        weight = clamped(estimator, "loss" if placement == "loss" else "reward", clamp)
        residual = max(
            residual, _relative(seen, torch.tensor([weight(x) for x in d.tolist()], dtype=d.dtype, device=d.device))
        )
    return Claim(name, f"under {clamp.target} clamp {clamp.low:g} to {clamp.high:g}", residual, laboratory.tolerance)


def _grid(laboratory: Laboratory) -> Tensor:
    """Log-ratios on both sides of zero, off the round numbers at which clamps stand."""
    return torch.linspace(-6.01, 6.02, 48, dtype=laboratory.dtype, device=laboratory.device)


def _relative(seen: Tensor, expected: Tensor) -> float:
    return float(((seen - expected).abs() / expected.abs().clamp(min=1)).max())


def _residual(configuration: Surrogate, expected: Tensor, outcomes: Outcomes) -> float:
    """The largest distance from the expected gradient, relative to it where it is longer than 1."""
    difference = (expected_gradient(configuration, outcomes) - expected).norm(dim=-1)
    return float((difference / expected.norm(dim=-1).clamp(min=1)).max())


def _worst_bias(configuration: Surrogate, benches: Sequence[Bench], beta: float) -> float:
    worst = 0.0
    for bench in benches:
        difference = (expected_gradient(configuration, bench.on_policy) - beta * bench.true).norm(dim=-1)
        worst = max(worst, float((difference / (beta * bench.true).norm(dim=-1)).max()))
    return worst
