"""Bias and variance of the configurations against the distance from the reference: what `klaudit verify --plot` draws."""

from __future__ import annotations

import torch

from klaudit.tensor.backend import exact_dtype
from klaudit.tensor.charts import Chart, Line
from klaudit.tensor.configurations import surrogate
from klaudit.tensor.gradients import distance, moments
from klaudit.tensor.instances import categorical
from klaudit.tensor.laboratory import Bench
from klaudit.theory import TABLE

DISTANCES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0)
_BIASED = (
    "k3-in-loss", "abs-in-loss", "k1-in-loss", "k2-in-loss-importance-weighted", "k2-in-reward", "k3-in-reward", "abs-in-reward",
)  # fmt: skip
_UNBIASED = ("k1-in-reward", "k2-in-loss", "k3-in-loss-importance-weighted", "k1-in-loss-importance-weighted")


def bias_and_variance(device: torch.device, seed: int) -> tuple[Chart, Chart]:
    """Medians over 40 random single-token policies at each distance; exact."""
    benches = [Bench.of(kl, categorical(kl, seed=seed).to(device, exact_dtype(device))) for kl in DISTANCES]
    biases, variances = {}, {}
    for row in TABLE.values():
        if row.id not in (*_BIASED, *_UNBIASED):
            continue
        found = [(moments(surrogate(row), bench.on_policy), bench) for bench in benches]
        biases[row.id] = tuple(float(distance(each.mean, bench.true).bias.median()) for each, bench in found)
        variances[row.id] = tuple(float((each.variance / bench.k1_variance).median()) for each, bench in found)
    x_label = "KL(pi||ref), nats"
    return (
        Chart(
            "Bias of the expected gradient", x_label, "|g - grad KL| / |grad KL|",
            tuple(Line(name, DISTANCES, biases[name]) for name in _BIASED), "log", "log",
            footnote=f"no bias per token: {', '.join(_UNBIASED[:3])}",
        ),
        Chart(
            "Variance of a sample's gradient", x_label, "variance / that of k1 in reward",
            tuple(Line(name, DISTANCES, variances[name]) for name in (*_BIASED, *_UNBIASED[2:])), "log", "log",
        ),
    )  # fmt: skip
