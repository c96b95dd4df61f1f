"""A sampled function as a table and as a small plot of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

_HEIGHT, _STEP = 11, 4
_SHOWN_AT = (-2.5, -1.2, -0.35, -0.1, 0.1, 0.35, 1.2, 2.5)


def table(samples: Sequence[tuple[float, float, float]]) -> list[str]:
    """Rows of d, the value, the score weight, and the one of KL(pi||ref)."""
    rows = [f"{'d':>8} {'value':>12} {'w(d)':>12} {'right: d':>12}"]
    rows += [f"{d:8.2f} {value:12.4f} {slope:12.4f} {d:12.2f}" for d, value, slope in samples if d in _SHOWN_AT]
    return rows


def plot(samples: Sequence[tuple[float, float, float]]) -> list[str]:
    """w(d) as `*` and the right weight as `.` over d, clipped to what fits; `#` where they meet."""
    points = [(d, slope) for d, _, slope in samples if math.isfinite(slope)]
    if not points:
        return []
    reach = min(max(max(abs(slope) for _, slope in points), max(abs(d) for d, _ in points)), 6.0)
    grid = [[" "] * (len(points) * _STEP) for _ in range(_HEIGHT)]
    middle = _HEIGHT // 2
    for column in range(len(grid[0])):
        grid[middle][column] = "-"
    for at, (d, slope) in enumerate(points):
        right, found = _row(d, reach), _row(slope, reach)
        grid[right][at * _STEP] = "."
        grid[found][at * _STEP] = "#" if found == right else "*"
    lines = ["".join(row).rstrip() for row in grid]
    labels = {0: f"{reach:5.2f}", middle: "    0", _HEIGHT - 1: f"{-reach:5.2f}"}
    return [f"{labels.get(at, ''):>5} |{line}" for at, line in enumerate(lines)] + [
        f"{'':>5}  d from {points[0][0]:g} to {points[-1][0]:g}; * w(d), . the weight of KL(pi||ref), # both"
    ]


def _row(value: float, reach: float) -> int:
    clipped = max(-reach, min(reach, value))
    return round((1 - clipped / reach) * (_HEIGHT - 1) / 2)
