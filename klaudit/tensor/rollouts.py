"""What a real run's log-probabilities say: how far it is from the reference, and how far each configuration is from the stated gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from klaudit.model import EstimatorName, Verdict
from klaudit.tensor.errors import TensorError
from klaudit.tensor.estimators import estimate
from klaudit.tensor.montecarlo import Estimate
from klaudit.tensor.rollout_files import read_arrays
from klaudit.theory import ESTIMATORS, TABLE, Clamp, clamped
from klaudit.theory.clamps import ClampedWeight

QUANTILES = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
_CLAMPS: tuple[tuple[EstimatorName, Clamp], ...] = (
    ("k1", Clamp("value", -10, 10)), ("k2", Clamp("value", -10, 10)), ("k3", Clamp("value", -10, 10)), ("k3", Clamp("log-ratio", -20, 20)),
)  # fmt: skip


_SURPRISING = 4.0  # standard errors


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Sequences (N) of up to T tokens: log-probabilities (N, T) in nats, float64, and which tokens count."""

    log_pi: Tensor
    log_ref: Tensor
    log_old: Tensor | None
    mask: Tensor
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path, keys: Mapping[str, str]) -> Rollouts:
        """From a file.  Raises TensorError for missing keys, wrong shapes, an empty mask and numbers that are not finite."""
        return cls.of(read_arrays(path, keys), path.name)

    @classmethod
    def of(cls, arrays: Mapping[str, Tensor], name: str) -> Rollouts:
        """From arrays by canonical name."""
        shape = tuple(arrays["logp"].shape)
        for key, array in arrays.items():
            if tuple(array.shape) != shape:
                raise TensorError(f"{name}: {key} has shape {tuple(array.shape)}, logp {shape}")
        if len(shape) not in (1, 2) or 0 in shape:
            raise TensorError(f"{name}: expected arrays of shape (sequences, tokens), got {shape}")
        notes = ["no sequences in the file: tokens are taken to be independent"] if len(shape) == 1 else []
        tables = {key: array.to(torch.float64).reshape(shape[0], -1) for key, array in arrays.items()}
        mask = tables.get("mask", torch.ones_like(tables["logp"])) != 0
        if not bool(mask.any()):
            raise TensorError(f"{name}: the mask keeps no token")
        for key in ("logp", "ref_logp", "old_logp"):
            if key in tables:
                _check_finite(name, key, tables[key][mask])
        if positive := int((tables["logp"][mask] > 0).sum()):
            notes.append(f"{positive} log-probabilities are positive")
        kept = {key: torch.where(mask, table, 0.0) for key, table in tables.items()}
        return cls(kept["logp"], kept["ref_logp"], kept.get("old_logp"), mask, tuple(notes))

    @property
    def d(self) -> Tensor:
        """log pi - log pi_ref of the tokens that count (tokens,)."""
        return (self.log_pi - self.log_ref)[self.mask]


@dataclass(frozen=True, slots=True)
class ConfigurationEffect:
    """A configuration's score weight on the run's own log-ratios, against w(d) = d.

    Taking the tokens' score vectors as orthogonal and of equal length: `multiplier` is the factor on the coefficient, `bias` the distance
    from the stated gradient relative to it, `cosine` between the two; constants, which have no expected gradient, are taken out.
    """

    configuration: str
    weight: str
    multiplier: float
    bias: float
    cosine: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured, in nats a token unless said otherwise."""

    sequences: int
    tokens: int
    estimates: dict[str, Estimate]
    sequence_kl: Estimate
    mean: float
    deviation: float
    lowest: float
    highest: float
    quantiles: dict[float, float]
    clamped: tuple[tuple[str, float], ...]
    effects: tuple[ConfigurationEffect, ...]
    staleness: dict[str, float] | None
    notes: tuple[str, ...]


def measure(rollouts: Rollouts) -> Measurement:
    """Estimates with standard errors clustered by sequence, the distribution of d, clamped shares and effects."""
    d = rollouts.d
    notes = list(rollouts.notes)
    if not bool((d != 0).any()):
        notes.append("logp and ref_logp are equal everywhere: the policy is the reference")
    table = (rollouts.log_pi - rollouts.log_ref) * rollouts.mask
    sequences = int(rollouts.mask.any(1).sum())
    if sequences < 2:
        raise TensorError("a standard error needs at least two sequences with tokens")
    estimates = {name: _clustered(estimate(name, table) * rollouts.mask, rollouts.mask) for name in ("k1", "k2", "k3")}
    kept = table[rollouts.mask.any(1)].sum(1)
    if not all(map(math.isfinite, (each.mean for each in estimates.values()))):
        notes.append("k3 overflows on this data: some ref_logp - logp exceeds 700 nats")
    gap = _clustered(
        (estimate("k3", table) - table) * rollouts.mask, rollouts.mask
    )  # E_pi[ref/pi] - 1 = 0 if pi drew the tokens
    if abs(gap.mean) > _SURPRISING * gap.standard_error:
        notes.append(
            f"k3 and k1 differ by {gap.mean:.3g} +- {gap.standard_error:.2g}: the tokens were not drawn from logp's policy "
            "(temperature, top-p, staleness, another engine)"
        )
    return Measurement(
        sequences=sequences,
        tokens=d.numel(),
        estimates=estimates,
        sequence_kl=Estimate.of(kept),
        mean=float(d.mean()),
        deviation=float(d.std(correction=0)),
        lowest=float(d.min()),
        highest=float(d.max()),
        quantiles=_quantiles(d),
        clamped=tuple(
            (
                f"{name}, {clamp.target} clamped to {clamp.low:g}..{clamp.high:g}",
                _dead_share(d, clamped(name, "loss", clamp)),
            )
            for name, clamp in _CLAMPS
        ),
        effects=_effects(d),
        staleness=_staleness(rollouts),
        notes=tuple(notes),
    )


def _check_finite(name: str, key: str, values: Tensor) -> None:
    if bad := int((~torch.isfinite(values)).sum()):
        raise TensorError(f"{name}: {bad} of {values.numel()} values of {key} under the mask are not finite")


def _clustered(values: Tensor, mask: Tensor) -> Estimate:
    """The token mean, with the standard error of a ratio of sums over independent sequences (tokens of one sequence are not)."""
    kept = mask.any(1)
    sums, lengths = values[kept].sum(1), mask[kept].sum(1)
    count = len(sums)
    mean = float(sums.sum() / lengths.sum())
    residuals = sums - mean * lengths
    error = float((residuals.square().sum() * count / (count - 1)).sqrt() / lengths.sum())
    return Estimate(mean, error, count)


def _quantiles(d: Tensor) -> dict[float, float]:
    ordered = d.sort().values
    return {level: float(ordered[min(int(level * len(ordered)), len(ordered) - 1)]) for level in QUANTILES}


def _dead_share(d: Tensor, weight: ClampedWeight) -> float:
    dead = torch.zeros_like(d, dtype=torch.bool)
    for low, high in weight.dead:
        dead |= (d > low) & (d < high)
    return float(dead.double().mean())


def _effects(d: Tensor) -> tuple[ConfigurationEffect, ...]:
    rows = [
        row
        for row in TABLE.values()
        if row.weight is not None and row.gradient != "none" and row.estimator in ESTIMATORS
    ]
    centred = d - d.mean()
    size = float(centred.norm())
    effects = []
    for row in rows:
        value, slope = estimate(row.estimator, d), _slope(row.estimator, d)
        seen = {"score": value, "pathwise": slope, "straight-through-k2": d, "importance-weighted": value + slope}[
            row.gradient
        ]
        weight = seen - seen.mean()
        norm = float(weight.norm())
        product = float((weight * centred).sum())
        silent = not size or norm <= 1e-12 * size
        effects.append(
            ConfigurationEffect(
                configuration=row.id,
                weight=row.weight_text,
                multiplier=product / size**2 if size else 0.0,
                bias=float((weight - centred).norm()) / size if size else 0.0,
                cosine=None if silent else product / (norm * size),
                verdict=row.verdict,
            )
        )
    return tuple(effects)


def _slope(name: EstimatorName, d: Tensor) -> Tensor:
    leaf = d.clone().requires_grad_()
    (slope,) = torch.autograd.grad(estimate(name, leaf).sum(), leaf)
    return slope


def _staleness(rollouts: Rollouts) -> dict[str, float] | None:
    """How far the policy is from the one that sampled: log-ratio, KL, effective share of the samples under importance weights."""
    if rollouts.log_old is None:
        return None
    log_rho = (rollouts.log_pi - rollouts.log_old)[rollouts.mask]
    rho = log_rho.exp()
    return {
        "kl_old_to_policy": float(-log_rho.mean()),
        "deviation_of_log_ratio": float(log_rho.std(correction=0)),
        "largest_ratio": float(rho.max()),
        "effective_share": float(rho.sum().square() / (rho.square().sum() * len(rho))),
    }
