"""What a penalty function does in the dtypes and at the log-ratios that training really meets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from klaudit.model import EstimatorName, Placement
from klaudit.tensor.backend import dtype_name
from klaudit.tensor.errors import TensorError
from klaudit.tensor.probes import TensorProbe

_NEAR = {
    torch.float32: 1e-3,
    torch.bfloat16: 0.1,
    torch.float16: 0.02,
}  # nats: the d at which cancellation starts to show
_FAR = {torch.float32: 95.0, torch.bfloat16: 95.0, torch.float16: 12.0}  # just beyond where exp overflows
_NEVER_NEGATIVE: frozenset[EstimatorName] = frozenset({"k2", "k3", "abs", "reversed-k3"})
_SUSPICIOUS = 0.25


def arithmetic_notes(probe: TensorProbe, estimator: EstimatorName, placement: Placement) -> Iterator[str]:
    """Faults of float32, bfloat16 and float16 arithmetic, one note a kind: overflow, NaN gradients, negative values, lost digits."""
    found: dict[str, list[str]] = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        low = replace(probe, dtype=dtype)
        try:
            faults = [
                *_overflows(low, placement),
                *(_cancellations(low, probe) if estimator in _NEVER_NEGATIVE else ()),
            ]
        except TensorError as error:
            faults = [(f"fails: {error}", "")]
        for kind, where in faults:
            found.setdefault(kind, []).append(f"{dtype_name(dtype)} {where}".strip())
    for kind, places in found.items():
        yield f"{kind}: {', '.join(places)}"


def _overflows(low: TensorProbe, placement: Placement) -> Iterator[tuple[str, str]]:
    for d in (-_FAR[low.dtype], _FAR[low.dtype]):
        value, slope = (float(x) for x in _at(low, torch.tensor([[d]])))
        slope = slope if placement == "loss" else 0.0  # a reward is a number
        if math.isfinite(value) and not math.isfinite(slope):
            yield (
                "the gradient is not finite though the value is (clamp or mask the log-ratio before exp)",
                f"at d = {d:g}",
            )
        elif not (math.isfinite(value) and math.isfinite(slope)):
            yield "overflows", f"at d = {d:g}"


def _cancellations(low: TensorProbe, exact: TensorProbe) -> Iterator[tuple[str, str]]:
    near = _NEAR[low.dtype]
    d = torch.linspace(-1, 1, 41)[:, None] * near
    d = d[d.abs().squeeze(-1) > 0.05 * near].to(low.dtype)  # rounded once, so that both see the same log-ratios
    value, _ = _at(low, d)
    right, _ = _at(exact, d)
    if bool((value < 0).any()) and not bool((right < 0).any()):
        yield (
            "negative near d = 0 (exp(x) - 1 - x cancels: use expm1)",
            f"down to {float(value.min()):.2g} for |d| < {near:g}",
        )
        return
    off = float((value.double().mean() - right.double().mean()) / right.double().mean())
    if abs(off) > _SUSPICIOUS:
        yield "loses its digits near d = 0", f"mean off by {off:+.0%} for |d| < {near:g}"


def _at(probe: TensorProbe, d: Tensor) -> tuple[Tensor, Tensor]:
    """Value and slope at log-ratios d, with log ref = 0 so that d is exact in every dtype."""
    log_pi = d.to(probe.dtype)
    return probe.evaluate(log_pi, torch.zeros_like(log_pi), log_pi.clone())
