"""Monte-Carlo rows: the paper's protocol on its minimal model, held against the exact expectations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.backend import seeded
from klaudit.tensor.claims import Claim
from klaudit.tensor.configurations import surrogate, value
from klaudit.tensor.gradients import distance, moments, sample_gradients
from klaudit.tensor.montecarlo import Estimate, simultaneous_level, student_quantile
from klaudit.tensor.rows import VerifyRow, descends, measured
from klaudit.tensor.surrogates import Surrogate, reward, total
from klaudit.tensor.toy import CLOSE_5, FAR_5, ToySetting, drawn, enumerated, exact_kl
from klaudit.theory import TABLE, Row

ROUNDS, SEQUENCES = 200, 1000
SETTINGS = (CLOSE_5, FAR_5)
FALSE_ALARMS = 1e-3  # the share of seeds for which any interval of the whole command may miss


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    row: Row
    configuration: Surrogate


def _entries() -> tuple[_Entry, ...]:
    k1, k3 = TABLE["k1", "reward", "score"], TABLE["k3", "loss", "pathwise"]
    plain = (
        k1,
        TABLE["k3", "reward", "score"],
        TABLE["k1", "loss", "pathwise"],
        k3,
        TABLE["k2", "loss", "pathwise"],
        TABLE["abs", "loss", "pathwise"],
    )
    return (
        *(_Entry(row.id, row, surrogate(row)) for row in plain),
        _Entry("k1-in-reward (return-to-go)", k1, reward("k1", "return-to-go")),
        _Entry("k3-in-both", k3, total((1.0, surrogate(TABLE["k3", "reward", "score"])), (1.0, surrogate(k3)))),
    )


def toy_rows(seed: int, device: torch.device, *, rounds: int = ROUNDS) -> Iterator[tuple[VerifyRow, Claim]]:
    """One row a setting and configuration: bias and variance over `rounds` rounds of 1000 sequences, and whether the exact expectation
    lies inside the interval.  Float64; seeds give the same samples on the same kind of device.
    """
    entries = _entries()
    level = simultaneous_level(1 - FALSE_ALARMS, len(entries) * len(SETTINGS))
    for index, setting in enumerate(SETTINGS):
        yield from _setting_rows(setting, entries, level, seeded(seed + index, device), rounds)


def _setting_rows(
    setting: ToySetting, entries: tuple[_Entry, ...], level: float, generator: torch.Generator, rounds: int
) -> Iterator[tuple[VerifyRow, Claim]]:
    everything = enumerated(setting)
    samples = drawn(setting, rounds, SEQUENCES, generator)
    kl, true = exact_kl(setting)
    true = true.to(samples.policy.device)
    yardstick: Tensor | None = None
    for entry in entries:
        each = sample_gradients(entry.configuration, samples)  # (rounds, sequences, 2)
        of_rounds = each.mean(1)
        variance = of_rounds.var(0).sum()
        yardstick = variance if yardstick is None else yardstick
        projected = Estimate.of((each @ true).flatten() / true.square().sum())
        expected = distance(moments(entry.configuration, everything).mean[0], true.cpu())
        row = measured(
            entry.row, f"minimal model, {setting.name}", kl, distance(of_rounds.mean(0)[None], true[None]),
            descends=descends(entry.row) if entry.name != "k3-in-both" else "KL(pi||ref)",
            verdict=entry.row.verdict if entry.name != "k3-in-both" else "unbiased",
            value_bias=(value(entry.row, samples).mean() / kl - 1)[None], variance_ratio=(variance / yardstick)[None],
            exact=False, interval=projected.interval(level), configuration=entry.name,
        )  # fmt: skip
        away = abs(projected.mean - float(expected.multiplier)) / projected.standard_error
        bound = student_quantile((1 + level) / 2, projected.count - 1)
        yield (
            row,
            Claim(entry.name, f"{setting.name}: the exact expectation lies in the {level:.4%} interval", away, bound),
        )
