"""The rows of the verification table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from klaudit.model import Verdict
from klaudit.tensor.gradients import Distance
from klaudit.tensor.montecarlo import Interval
from klaudit.theory import Row


@dataclass(frozen=True, slots=True)
class VerifyRow:
    """One configuration in one sampling regime, against the exact gradient of KL(pi||ref); medians over random policies.

    `kl` is KL(pi||ref) in nats.  `value_bias` is relative to it, `gradient_bias` to the true gradient's length, `variance_ratio` to the
    variance of rewarded k1's gradient in the same place.  `multiplier` is the factor by which the coefficient is effectively scaled.
    `angle` is in degrees.  None: not defined there.  For a Monte-Carlo row, `interval` is that of the multiplier.
    """

    regime: str
    configuration: str
    estimator: str
    placement: str
    gradient: str
    kl: float | None
    value_bias: float | None
    gradient_bias: float
    norm_ratio: float
    multiplier: float
    cosine: float | None
    angle: float | None
    variance_ratio: float | None
    descends: str
    verdict: Verdict
    exact: bool = True
    interval: Interval | None = None

    @property
    def is_finite(self) -> bool:
        """Whether all that must be a number is one."""
        numbers = (self.gradient_bias, self.norm_ratio, self.multiplier, self.value_bias, self.variance_ratio)
        return all(number is None or math.isfinite(number) for number in numbers)


def measured(
    row: Row,
    regime: str,
    kl: float | None,
    distance: Distance,
    *,
    descends: str,
    verdict: Verdict,
    value_bias: Tensor | None = None,
    variance_ratio: Tensor | None = None,
    exact: bool = True,
    interval: Interval | None = None,
    configuration: str = "",
) -> VerifyRow:
    """A row from measurements per instance (B,)."""
    return VerifyRow(
        regime=regime,
        configuration=configuration or row.id,
        estimator=row.estimator,
        placement=row.placement,
        gradient=row.variant or row.gradient,
        kl=kl,
        value_bias=_median(value_bias),
        gradient_bias=float(distance.bias.median()),
        norm_ratio=float(distance.norm_ratio.median()),
        multiplier=float(distance.multiplier.median()),
        cosine=_median_where_defined(distance.cosine),
        angle=_median_where_defined(distance.angle),
        variance_ratio=_median(variance_ratio),
        descends=descends,
        verdict=verdict,
        exact=exact,
        interval=interval,
    )


def descends(row: Row, *, stale: bool = False) -> str:
    """The objective of one kind of sampling, where the theory's text names both."""
    known = row.stale if stale else row.objective
    return row.descends if known is None else str(known)


def _median(values: Tensor | None) -> float | None:
    return None if values is None else float(values.median())


def _median_where_defined(values: Tensor) -> float | None:
    """The median of those that are numbers; None where there are none: a vanishing gradient has no direction."""
    median = float(values.nanmedian())
    return None if math.isnan(median) else median
