"""The score weights of the configurations over the log-ratios that a run really met."""

from __future__ import annotations

import torch
from torch import Tensor

from klaudit.tensor.charts import Chart, Line
from klaudit.theory import TABLE, Row

_SHOWN = ("k1-in-reward", "k3-in-loss", "k3-in-reward", "abs-in-loss", "k2-in-reward", "k1-in-loss")
_BINS, _POINTS = 40, 81
_CORE = 0.999  # share of the tokens that the axis spans
_TALLEST = 0.6  # of the panel


def weights_on(d: Tensor) -> tuple[Chart]:
    """Score weights as lines over a histogram of `d` (tokens,), on the central 99.9 % of the tokens."""
    ordered = d.sort().values
    tail = int((1 - _CORE) / 2 * len(ordered))
    low, high = float(ordered[tail]), float(ordered[len(ordered) - 1 - tail])
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    counts = torch.histc(d, _BINS, low, high)
    width = (high - low) / _BINS
    heights = (_TALLEST * counts / counts.max().clamp(min=1)).tolist()
    bars = tuple((low + index * width, low + (index + 1) * width, height) for index, height in enumerate(heights))
    x = tuple(torch.linspace(low, high, _POINTS, dtype=torch.float64).tolist())
    rows = [row for name in _SHOWN for row in TABLE.values() if row.id == name]
    room = 1.3 * max(abs(low), abs(high))
    return (
        Chart(
            "Score weights on these rollouts", "d = log pi - log ref, nats", "w(d)", tuple(_line(row, x) for row in rows),
            y_range=(-room, room), bars=bars, footnote="grey: how many tokens; right is w(d) = d",
        ),
    )  # fmt: skip


def _line(row: Row, x: tuple[float, ...]) -> Line:
    assert row.weight is not None
    return Line(row.id, x, tuple(map(row.weight, x)))
