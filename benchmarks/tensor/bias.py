"""Norm ratio, cosine, bias and variance of every configuration, per token and over sequences, on- and off-policy."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.tensor.markdown import Cell, table
from klaudit.tensor.configurations import sampled_rows, stale_surrogate, surrogate
from klaudit.tensor.estimators import estimate
from klaudit.tensor.gradients import distance, moments
from klaudit.tensor.laboratory import Bench, Laboratory
from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import Surrogate, full_loss, full_reward, loss, reward, total
from klaudit.theory import both_placements

HEAD = "norm ratio / cosine [worst] / bias / variance relative to k1 in the reward"


def sections() -> Iterator[str]:
    laboratory = Laboratory.at(torch.device("cpu"))
    yield f"## Single tokens, V = 8, medians of 40\n\n{HEAD}\n\n" + _table(laboratory.tokens, _token_configurations())
    yield f"## Sequences, V = 4, up to 4 tokens, medians of 20\n\n{HEAD}\n\n" + _table(
        laboratory.sequences, _sequence_configurations()
    )


def clamped_k3(outcomes: Outcomes) -> Tensor:
    """k3 in the loss, its value clamped to +-10 nats."""
    each = estimate("k3", outcomes.log_pi - outcomes.log_ref).clamp(-10, 10)
    return (each * outcomes.mask).sum(-1)


def _token_configurations() -> Iterator[tuple[str, Surrogate, bool]]:
    for row in sampled_rows():
        if row.gradient != "none" and row.variant in ("", "detached-ratio"):
            yield row.id, surrogate(row), False
    yield "k3-in-loss, value clamped to +-10", clamped_k3, False
    for row in sampled_rows():
        if row.gradient != "none" and row.variant in ("", "detached-ratio") and row.estimator != "full":
            how = ", frozen, importance-weighted" if row.placement == "reward" else ""
            yield f"off-policy: {row.id}{how}", stale_surrogate(row), True


def _sequence_configurations() -> Iterator[tuple[str, Surrogate, bool]]:
    for row in sampled_rows():
        if row.gradient != "none" and row.variant != "self-ratio":
            yield row.id, surrogate(row), False
    yield "k1-in-reward, return-to-go", reward("k1", "return-to-go"), False
    for in_reward, in_loss, _ in both_placements():
        yield f"{in_reward.estimator} in both", total((1.0, surrogate(in_reward)), (1.0, surrogate(in_loss))), False
    yield "full in both", total((1.0, full_reward), (1.0, full_loss)), False
    yield "k3 in both, half the coefficient each", total((0.5, reward("k3")), (0.5, loss("k3", "pathwise"))), False
    for name in ("k1", "k2", "k3"):
        yield f"off-policy: {name}-in-loss", loss(name, "pathwise"), True
    yield "off-policy: k3-in-loss-importance-weighted", loss("k3", "importance-weighted"), True
    yield (
        "off-policy: k1-in-reward, current, ratio of the sequence",
        reward("k1", "sequence-sum", "sequence-ratio"),
        True,
    )
    yield (
        "off-policy: k1-in-reward, frozen, ratio per token",
        reward("k1", "return-to-go", "token-ratio", frozen=True),
        True,
    )
    yield "off-policy: k1-in-reward, frozen, no ratio", reward("k1", "return-to-go", frozen=True), True


def _table(benches: tuple[Bench, ...], configurations: Iterator[tuple[str, Surrogate, bool]]) -> str:
    rows: list[list[Cell]] = [
        [name, *(_cell(bench, configuration, stale) for bench in benches)]
        for name, configuration, stale in configurations
    ]
    return table(["configuration", *(f"KL(pi||ref) = {bench.kl:g}" for bench in benches)], rows)


def _cell(bench: Bench, configuration: Surrogate, stale: bool) -> str:
    found = moments(configuration, bench.off_policy if stale else bench.on_policy)
    away = distance(found.mean, bench.true)
    cosine = "-" if bool(away.cosine.isnan().all()) else f"{away.cosine.nanmedian():.3g} [{away.cosine.min():.2g}]"
    numbers = [away.norm_ratio, away.bias, found.variance / bench.k1_variance]
    norm, bias, variance = (_short(float(each.median())) for each in numbers)
    return f"{norm} / {cosine} / {bias} / {variance}"


def _short(value: float) -> str:
    return "0" if abs(value) < 1e-9 else f"{value:.3g}"
