"""The per-token estimators of KL(pi||ref): k1, k2, k3 (Schulman 2020, joschu.net/blog/kl-approx.html) and two that pass for them."""

from __future__ import annotations

from msgspec import Struct

from klaudit.model import EstimatorName
from klaudit.theory.weights import ScoreWeight


class Estimator(Struct, frozen=True):
    """A per-token estimator: its value k(d) and its slope dk/dlog pi, both as sums over the same basis."""

    name: EstimatorName
    formula: str
    value: ScoreWeight
    slope: ScoreWeight


ESTIMATORS: dict[EstimatorName, Estimator] = {
    e.name: e
    for e in (
        Estimator("k1", "d", ScoreWeight.of(linear=1), ScoreWeight.of(constant=1)),
        Estimator("k2", "d^2/2", ScoreWeight.of(square=0.5), ScoreWeight.of(linear=1)),
        Estimator(
            "k3",
            "exp(-d) - 1 + d",
            ScoreWeight.of(decay=1, constant=-1, linear=1),
            ScoreWeight.of(constant=1, decay=-1),
        ),
        Estimator("abs", "|d|", ScoreWeight.of(modulus=1), ScoreWeight.of(sign=1)),
        Estimator(
            "reversed-k3",
            "exp(d) - 1 - d",
            ScoreWeight.of(growth=1, constant=-1, linear=-1),
            ScoreWeight.of(growth=1, constant=-1),
        ),
    )
}
