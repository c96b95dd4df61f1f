"""What a penalty function turned out to be; needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.theory import TABLE, ZERO
from klaudit.theory.identify import Identity

Samples = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A penalty function, identified by its value and slope, in the words of the report.

    `score_weight` is the formula in d, or `sampled` where none fits; `clamp` is the range of d (nats) outside which the formula does not
    hold, None where it holds everywhere; `samples` are `(d, value, score weight)`.  `descends` is the objective on-policy.
    """

    placement: Placement
    estimator: EstimatorName
    gradient: Gradient
    variant: str
    score_weight: str
    descends: str
    verdict: Verdict
    clamp: tuple[float, float] | None
    notes: tuple[str, ...]
    samples: Samples

    @classmethod
    def of(cls, identity: Identity, placement: Placement, extra_notes: tuple[str, ...] = ()) -> Fingerprint:
        live = identity.live
        return cls(
            placement=placement,
            estimator=identity.estimator,
            gradient=identity.gradient,
            variant=identity.variant,
            score_weight="sampled" if identity.weight is None else str(identity.weight),
            descends=_descends(identity, placement),
            verdict=identity.verdict,
            clamp=None if live.is_everywhere else (live.low, live.high),
            notes=(*identity.notes, *extra_notes),
            samples=identity.samples,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; infinite bounds become None, as JSON has no infinity."""
        plain = asdict(self)
        plain["clamp"] = (
            None if self.clamp is None else [bound if math.isfinite(bound) else None for bound in self.clamp]
        )
        plain["samples"] = [[number if math.isfinite(number) else None for number in sample] for sample in self.samples]
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Fingerprint:
        """The inverse of `to_json`, but for numbers that were not finite."""
        clamp = plain["clamp"]
        bounds = (
            None
            if clamp is None
            else tuple(
                side if bound is None else bound for bound, side in zip(clamp, (-math.inf, math.inf), strict=True)
            )
        )
        samples = tuple(
            tuple(math.nan if number is None else number for number in sample) for sample in plain["samples"]
        )
        return cls(
            **{
                **plain,
                "clamp": cast("tuple[float, float] | None", bounds),
                "notes": tuple(plain["notes"]),
                "samples": cast(Samples, samples),
            }
        )

    def table(self) -> str:
        """The sampled value and score weight beside the right one, one line a d."""
        lines = [f"{'d':>8} {'value':>14} {'w(d)':>14} {'w of KL':>14}"]
        lines += [f"{d:>8.4g} {value:>14.6g} {weight:>14.6g} {d:>14.6g}" for d, value, weight in self.samples]
        return "\n".join(lines)

    def summary(self) -> str:
        """One line."""
        form = self.variant or self.gradient
        how = f" ({form})" if self.placement == "loss" else ""
        return f"{self.estimator} in {self.placement}{how}: w(d) = {self.score_weight}, descends {self.descends}: {self.verdict}"


def _descends(identity: Identity, placement: Placement) -> str:
    """The objective of the table's row with the same score weight, whatever the estimator is called."""
    weight = identity.weight
    if weight is None or identity.verdict == "unknown":
        return "no known divergence" if identity.verdict != "unknown" else "unknown"
    if weight.is_constant:
        return "nothing on-policy"
    for row in TABLE.values():
        if row.placement != placement or row.weight is None or row.weight == ZERO or row.objective is None:
            continue
        scale = _proportion(weight.parts, row.weight.parts)
        if scale is not None:
            return (
                str(row.objective)
                if scale == 1
                else f"{scale:.6g} times {row.objective}"
                if " " not in str(row.objective)
                else f"{scale:.6g} times ({row.objective})"
            )
    return "no known divergence"


def _proportion(parts: tuple[tuple[str, float], ...], others: tuple[tuple[str, float], ...]) -> float | None:
    """The factor between two score weights, up to a constant (which has no expected gradient); None where there is none."""
    varying = [(name, value) for name, value in parts if name != "1"]
    other = dict(pair for pair in others if pair[0] != "1")
    if {name for name, _ in varying} != set(other):
        return None
    factors = {round(value / other[name], 6) for name, value in varying}
    return factors.pop() if len(factors) == 1 else None
