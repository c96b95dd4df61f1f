"""What floating-point arithmetic does to the estimators: cancellation, rounding of log-probabilities, overflow, clamps and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.model import EstimatorName
from klaudit.tensor.backend import dtype_name, seeded
from klaudit.tensor.estimators import estimate

_SAMPLES = 1 << 18
_DEVIATIONS = {torch.float32: (1e-2, 1e-3, 1e-4), torch.bfloat16: (0.1, 0.01), torch.float16: (0.1, 0.01)}
_OVERFLOW = {torch.float32: 100.0, torch.bfloat16: 100.0, torch.float16: 12.0}
_ENTROPY_SCALE = 7.0
_VOCABULARY, _POSITIONS, _DRAWS = 32_768, 16, 4096
_SHIFTED: tuple[EstimatorName, ...] = ("k1", "k2", "k3")
_STEPS = (0.003, 0.01, 0.1)  # deviations of the step from the reference's logits


@dataclass(frozen=True, slots=True)
class Numeric:
    """One measured effect: what was done, in which dtype, and what came out, as numbers by name."""

    case: str
    dtype: str
    measured: dict[str, float]

    @property
    def text(self) -> str:
        return ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())


def check_numerics(device: torch.device, seed: int = 0) -> Iterator[Numeric]:
    """All effects on `device`."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        yield from _cancellation(device, dtype, seed)
    yield from _rounded_log_probs(device, seed)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        yield from _overflow(device, dtype)


def _cancellation(device: torch.device, dtype: torch.dtype, seed: int) -> Iterator[Numeric]:
    """k3 near d = 0, both ways of writing it, against float64 on the very same log-ratios."""
    for deviation in _DEVIATIONS[dtype]:
        x = (torch.randn(_SAMPLES, generator=seeded(seed), dtype=torch.float64) * deviation).to(dtype).to(device)
        exact = float((torch.expm1(x.cpu().double()) - x.cpu().double()).mean())
        forms: tuple[tuple[str, Tensor], ...] = (
            ("exp(x) - x - 1", torch.exp(x) - x - 1),
            ("expm1(x) - x", torch.expm1(x) - x),
        )
        for name, value in forms:
            yield Numeric(
                f"k3 as {name}, d ~ N(0, {deviation:g}^2)", dtype_name(dtype),
                {
                    "relative bias": float(value.cpu().double().mean()) / exact - 1,
                    "negative": float((value < 0).cpu().double().mean()),
                    "zero": float((value == 0).cpu().double().mean()),
                },
            )  # fmt: skip


def _rounded_log_probs(device: torch.device, seed: int) -> Iterator[Numeric]:
    """Log-probabilities stored in bfloat16, arithmetic in float32: rounding adds half its variance to k2 and k3, none to k1."""
    generator = seeded(seed)
    reference = torch.randn(_POSITIONS, _VOCABULARY, generator=generator, dtype=torch.float64) * _ENTROPY_SCALE
    step = torch.randn(_POSITIONS, _VOCABULARY, generator=generator, dtype=torch.float64)
    log_ref = torch.log_softmax(reference, -1)
    for size in _STEPS:
        log_pi = torch.log_softmax(reference + size * step, -1)
        true = float((log_pi.exp() * (log_pi - log_ref)).sum(-1).mean())
        drawn = torch.multinomial(log_pi.exp(), _DRAWS, replacement=True, generator=generator)
        exact = (log_pi - log_ref).gather(-1, drawn)
        own, other = (table.gather(-1, drawn).to(torch.bfloat16).to(device).float() for table in (log_pi, log_ref))
        rounded = own - other
        shifts = {
            f"{name} shifted by": float(estimate(name, rounded).cpu().double().mean())
            - float(estimate(name, exact).mean())
            for name in _SHIFTED
        }
        yield Numeric(f"log-probabilities rounded to bfloat16, KL(pi||ref) = {true:.2g}", "float32", shifts)


def _overflow(device: torch.device, dtype: torch.dtype) -> Iterator[Numeric]:
    """k3 and its gradient where ref is far likelier than pi, under the usual remedies; 1 means finite."""
    far = _OVERFLOW[dtype]
    remedies: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
        ("none", lambda x: torch.exp(x) - x - 1),
        ("clamp of the value", lambda x: (torch.exp(x) - x - 1).clamp(-10, 10)),
        ("product with a zero mask", lambda x: (torch.exp(x) - x - 1) * 0),
        ("torch.where on the value", lambda x: torch.where(x < far / 2, torch.exp(x) - x - 1, torch.zeros_like(x))),
        ("clamp of the log-ratio", lambda x: torch.exp(x.clamp(-10, 10)) - x.clamp(-10, 10) - 1),
    )
    for name, remedy in remedies:
        log_pi = torch.full((1,), -far, dtype=dtype, device=device, requires_grad=True)
        value = remedy(-log_pi)
        (slope,) = torch.autograd.grad(value.sum(), log_pi)
        finite = {
            "value finite": float(torch.isfinite(value).all()),
            "gradient finite": float(torch.isfinite(slope).all()),
        }
        yield Numeric(f"k3 at d = {-far:g}, remedy: {name}", dtype_name(dtype), finite)
