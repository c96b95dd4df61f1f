"""The minimal model of arXiv 2512.21852: bias and variance over rounds, and from which batch on a configuration is the better one."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.tensor.markdown import Cell, table
from klaudit.tensor.backend import seeded
from klaudit.tensor.gradients import sample_gradients
from klaudit.tensor.surrogates import Surrogate, loss, reward, total
from klaudit.tensor.toy import CLOSE_5, CLOSE_20, FAR_5, FAR_20, ToySetting, drawn, exact_kl

ROUNDS, SEQUENCES, PORTION = 200, 1000, 20
SETTINGS = (CLOSE_5, CLOSE_20, FAR_5, FAR_20)
CONFIGURATIONS: tuple[tuple[str, Surrogate], ...] = (
    ("k1 in reward, sum", reward("k1")),
    ("k1 in reward, return-to-go", reward("k1", "return-to-go")),
    ("k1 in loss", loss("k1", "pathwise")),
    ("k3 in reward", reward("k3")),
    ("k3 in loss", loss("k3", "pathwise")),
    ("k2 in loss", loss("k2", "pathwise")),
    ("k3 in both", total((1.0, reward("k3", "return-to-go")), (1.0, loss("k3", "pathwise")))),
    ("abs in loss", loss("abs", "pathwise")),
)
PAIRS = (
    ("k1 in reward, sum", "k2 in loss"),
    ("k1 in reward, return-to-go", "k2 in loss"),
    ("k1 in reward, sum", "k3 in loss"),
)


def sections() -> Iterator[str]:
    measured = {setting.name: _measured(setting) for setting in SETTINGS}
    head = ["configuration", *(f"{setting.name} (KL {exact_kl(setting)[0]:.3f})" for setting in SETTINGS)]
    true = ["true gradient", *(str([round(x, 4) for x in exact_kl(setting)[1].tolist()]) for setting in SETTINGS)]
    rows = [true]
    for name, _ in CONFIGURATIONS:
        cells = [measured[setting.name][name] for setting in SETTINGS]
        rows.append([name, *(f"{bias:.3g} ({relative:.3f}) {variance:.2g}" for bias, relative, variance in cells)])
    yield (
        f"## The minimal model\n\n|bias| (relative) and variance of the gradient of {SEQUENCES} sequences, over {ROUNDS} rounds\n\n"
        + table(head, rows)
    )
    crossings: list[list[Cell]] = []
    for better, other in PAIRS:
        found = [measured[setting.name] for setting in SETTINGS]
        sizes = [
            SEQUENCES * (each[better][2] - each[other][2]) / (each[other][0] ** 2 - each[better][0] ** 2)
            for each in found
        ]
        crossings.append([f"{better} beats {other}", *(f"{max(size, 1):.0f}" for size in sizes)])
    yield "## From how many sequences on the gradient's mean square error is smaller\n\n" + table(head, crossings)


def _measured(setting: ToySetting) -> dict[str, tuple[float, float, float]]:
    _, true = exact_kl(setting)
    generator = seeded(0)
    rounds: dict[str, list[Tensor]] = {name: [] for name, _ in CONFIGURATIONS}
    for _ in range(ROUNDS // PORTION):
        outcomes = drawn(setting, PORTION, SEQUENCES, generator)
        for name, configuration in CONFIGURATIONS:
            rounds[name].append(sample_gradients(configuration, outcomes).mean(1))
    found = {}
    for name, parts in rounds.items():
        each = torch.cat(parts)
        bias = float((each.mean(0) - true).norm())
        found[name] = (bias, bias / float(true.norm()), float(each.var(0).sum()))
    return found
