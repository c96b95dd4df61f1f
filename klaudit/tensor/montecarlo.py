"""Means of samples with standard errors and confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval of the given level."""

    low: float
    high: float
    level: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of `count` independent samples and its standard error."""

    mean: float
    standard_error: float
    count: int

    @classmethod
    def of(cls, samples: Tensor) -> Estimate:
        """From independent samples (N,).  Raises ValueError below two samples."""
        count = samples.numel()
        if count < 2:
            raise ValueError(f"a standard error needs at least two samples, not {count}")
        return cls(samples.mean().item(), samples.std().item() / math.sqrt(count), count)

    def interval(self, level: float = 0.95) -> Interval:
        """The Student-t interval; exact for normal samples, asymptotically right for others."""
        half = student_quantile((1 + level) / 2, self.count - 1) * self.standard_error
        return Interval(self.mean - half, self.mean + half, level)


def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t, by the Cornish-Fisher expansion around the normal one (Abramowitz & Stegun 26.7.5).

    Exact closed forms for one and two degrees of freedom, for which the expansion fails; from three on within 1 % at 99 %.
    """
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        alpha = 4 * probability * (1 - probability)
        return (2 * probability - 1) * math.sqrt(2 / alpha)
    z = NormalDist().inv_cdf(probability)
    n = float(degrees)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n ** (order + 1) for order, term in enumerate(terms))


def simultaneous_level(level: float, intervals: int) -> float:
    """The level of each of several intervals, so that all hold together with probability `level` (Bonferroni)."""
    return 1 - (1 - level) / max(intervals, 1)
