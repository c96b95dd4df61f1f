"""Comparing samples of functions: equal, constant, equal up to scale and shift, a sum over the theory's basis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from klaudit.theory import ScoreWeight
from klaudit.theory.weights import BASIS, Basis

_TOLERANCE = 1e-7


def is_constant(values: Sequence[float]) -> bool:
    return all(abs(value - values[0]) <= _TOLERANCE * (1 + abs(values[0])) for value in values)


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    size = max((abs(value) for value in (*one, *other) if math.isfinite(value)), default=0.0)
    return all(u == v or abs(u - v) <= _TOLERANCE * (1e-6 + size) for u, v in zip(one, other, strict=True))


def affine(basis: Sequence[float], values: Sequence[float]) -> tuple[float, float] | None:
    """(scale, shift) with values = scale * basis + shift, None where that does not hold or the scale is 0."""
    mean_basis, mean_value = math.fsum(basis) / len(basis), math.fsum(values) / len(values)
    spread = math.fsum((b - mean_basis) ** 2 for b in basis)
    if not math.isfinite(mean_value) or spread == 0:
        return None
    scale = math.fsum((b - mean_basis) * (v - mean_value) for b, v in zip(basis, values, strict=True)) / spread
    shift = mean_value - scale * mean_basis
    size = max(abs(v) for v in values)
    if abs(scale) < 1e-12 * (1 + size) or not same([scale * b + shift for b in basis], list(values)):
        return None
    scale = rounded(scale)
    return scale, 0.0 if abs(shift) <= _TOLERANCE * (abs(scale) + size) else rounded(shift)


_COMBINATIONS: tuple[tuple[Basis, ...], ...] = (
    ("1",), ("1", "d"), ("1", "exp(-d)"), ("1", "exp(d)"), ("1", "sign(d)"), ("1", "abs(d)"),
    ("1", "d", "exp(-d)"), ("1", "d", "d**2"), ("1", "d", "exp(d)"), ("1", "sign(d)", "abs(d)"),
    ("1", "d", "exp(-d)", "exp(d)", "sign(d)", "abs(d)", "d**2"),
)  # fmt: skip


def weight(d: Sequence[float], slopes: Sequence[float]) -> ScoreWeight | None:
    """The slopes as a sum over the theory's basis, with the fewest functions that do; None where they are no such sum."""
    if any(not math.isfinite(slope) for slope in slopes):
        return None
    for used in _COMBINATIONS:
        columns = [[BASIS[name](x) for x in d] for name in used]
        solution = _least_squares(columns, slopes) if len(used) < len(d) else None
        if solution is not None:
            fitted = [
                math.fsum(c * column[at] for c, column in zip(solution, columns, strict=True)) for at in range(len(d))
            ]
            if same(fitted, slopes):
                return ScoreWeight.from_pairs(
                    (name, rounded(c)) for name, c in zip(used, solution, strict=True) if abs(c) > 1e-6
                )
    return None


def _least_squares(columns: Sequence[Sequence[float]], values: Sequence[float]) -> list[float] | None:
    """Coefficients by the normal equations, Gaussian elimination with pivoting."""
    size = len(columns)
    rows = [
        [math.fsum(a * b for a, b in zip(columns[i], columns[j], strict=True)) for j in range(size)]
        + [math.fsum(a * v for a, v in zip(columns[i], values, strict=True))]
        for i in range(size)
    ]
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        if abs(rows[pivot][at]) < 1e-12:
            return None
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for other in range(size):
            if other != at:
                factor = rows[other][at] / rows[at][at]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [rows[at][size] / rows[at][at] for at in range(size)]


def rounded(value: float) -> float:
    """Without the noise of arithmetic in the last digits."""
    return float(f"{value:.9g}")
