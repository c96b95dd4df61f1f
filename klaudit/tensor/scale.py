"""The exact expected gradient at the scale of a language model: every configuration, a whole vocabulary, thousands of tokens.

With respect to a position's logits, E_pi[w grad log pi] = pi*(w - E_pi[w]), so no sampling is needed.  Logits come from a seeded
generator at a chosen distance from the reference and are made chunk by chunk, within a memory budget; nothing of the size tokens x
vocabulary is ever held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.backend import device_name, dtype_name
from klaudit.tensor.estimators import estimate
from klaudit.tensor.memory import bandwidth, peak_memory, reset_peak, synchronise
from klaudit.theory import TABLE, Row, clamped
from klaudit.theory.clamps import Clamp

VOCABULARY = 151_936
DISTANCES = (1.8e-4, 4.4e-3, 0.125)  # nats a token: early, in the middle, and late in training
_ENTROPY_SCALE = 7.0  # deviation of the reference logits: about a nat of entropy, as a language model's tokens have
_RESCALINGS, _KL_ACCURACY = 20, 0.01
_LIVE_TENSORS = 12  # of the size chunk x vocabulary, at the worst moment

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Size:
    """How many tokens, over what vocabulary, in what dtype; `memory` (bytes) bounds a chunk's working set."""

    tokens: int
    vocabulary: int = VOCABULARY
    dtype: torch.dtype = torch.float64
    memory: int = 1 << 30

    @property
    def chunk(self) -> int:
        """Tokens at a time."""
        return max(1, min(self.tokens, self.memory // (_LIVE_TENSORS * self.vocabulary * self.dtype.itemsize)))

    @classmethod
    def for_device(cls, device: torch.device, tokens: int | None, memory: int | None) -> Size:
        """The full size where there is an accelerator; on a CPU 16 tokens in float64, which takes seconds."""
        if device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            return cls(tokens or 4096, dtype=torch.float32, memory=memory or min(free // 2, 16 << 30))
        return cls(
            tokens or 16, dtype=torch.float32 if device.type == "mps" else torch.float64, memory=memory or 1 << 30
        )


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """One configuration at one distance: relative bias of the expected gradient, over all tokens and logits together."""

    configuration: str
    kl: float
    gradient_bias: float
    norm_ratio: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class ScaleReport:
    """The rows, and what the computation cost; `bandwidth_share` is the memory traffic needed at least over that of a plain copy."""

    device: str
    dtype: str
    tokens: int
    vocabulary: int
    chunk: int
    rows: tuple[ScaleRow, ...]
    closed_form_error: float
    seconds: float
    tokens_per_second: float
    peak_bytes: int
    copy_bandwidth: float
    bandwidth_share: float
    reduced: bool

    @property
    def broken(self) -> tuple[str, ...]:
        """What the theory says and these numbers do not show: k3's gradient is pi - ref, unbiased rows have no bias."""
        exact = 1e-9 if self.dtype == "float64" else 1e-3
        unbiased = {row.id for row in TABLE.values() if row.verdict in ("unbiased", "unbiased-per-token")}
        off = [row for row in self.rows if row.configuration in unbiased and not row.gradient_bias <= exact]
        wrong = [f"{row.configuration} at KL {row.kl:g}: bias {row.gradient_bias:.2g}" for row in off]
        wrong += [
            f"{row.configuration} at KL {row.kl:g} is not finite"
            for row in self.rows
            if not math.isfinite(row.gradient_bias)
        ]
        if not self.closed_form_error <= exact / 100:
            wrong.append(f"k3-in-loss is not pi - ref: off by {self.closed_form_error:.2g}")
        return tuple(wrong)


def check_scale(
    device: torch.device, size: Size, *, seed: int = 0, progress: Progress = lambda stage: None
) -> ScaleReport:
    """Measure every row of the table, and a clamped k3, at each distance."""
    configurations = _configurations()
    copy = bandwidth(device)
    rows: list[ScaleRow] = []
    error = 0.0
    reset_peak(device)
    started = time.perf_counter()
    for kl in DISTANCES:
        progress(f"KL(pi||ref) = {kl:g}")
        sums, worst = _accumulated(device, size, kl, seed, configurations)
        error = max(error, worst)
        rows += [_row(name, kl, sums[name], torch.finfo(size.dtype).eps) for name, _ in configurations]
    synchronise(device)
    seconds = time.perf_counter() - started
    done = size.tokens * len(DISTANCES)
    least_traffic = (
        done * size.vocabulary * size.dtype.itemsize * (2 + 2 * len(configurations))
    )  # each weight once read, once written
    return ScaleReport(
        device=device_name(device), dtype=dtype_name(size.dtype), tokens=size.tokens, vocabulary=size.vocabulary, chunk=size.chunk,
        rows=tuple(rows), closed_form_error=error, seconds=seconds, tokens_per_second=done / seconds, peak_bytes=peak_memory(device),
        copy_bandwidth=copy, bandwidth_share=least_traffic / seconds / copy, reduced=device.type != "cuda",
    )  # fmt: skip


def logit_gradient(policy: Tensor, weight: Tensor) -> Tensor:
    """E_pi[w grad log pi] with respect to the logits, from probabilities and weights (..., V)."""
    return policy * (weight - (policy * weight).sum(-1, keepdim=True))


def _configurations() -> list[tuple[str, Callable[[Tensor], Tensor]]]:
    """Names and score weights as functions of d, for the rows that are one."""
    found: list[tuple[str, Callable[[Tensor], Tensor]]] = []
    for row in TABLE.values():
        if (
            row.weight is not None
            and row.gradient in ("score", "pathwise", "importance-weighted")
            and not row.weight.is_zero
        ):
            found.append((row.id, _weight_function(row)))
    live = next(
        (low, high) for low, high, weight in clamped("k3", "loss", Clamp("value", -10, 10)).pieces if not weight.is_zero
    )
    k3 = dict(found)["k3-in-loss"]
    found.append(("k3-in-loss, clamped to +-10", lambda d: torch.where((d > live[0]) & (d < live[1]), k3(d), 0.0)))
    return found


def _weight_function(row: Row) -> Callable[[Tensor], Tensor]:
    def slope(d: Tensor) -> Tensor:
        if row.estimator == "k1":
            return torch.ones_like(d)
        if row.estimator == "k2":
            return d
        if row.estimator == "k3":
            return -torch.expm1(-d)
        return d.sign() if row.estimator == "abs" else torch.expm1(d)

    if row.gradient == "score":
        return lambda d: estimate(row.estimator, d)
    if row.gradient == "pathwise":
        return slope
    return lambda d: estimate(row.estimator, d) + slope(d)


def _accumulated(
    device: torch.device, size: Size, kl: float, seed: int, configurations: list[tuple[str, Callable[[Tensor], Tensor]]]
) -> tuple[dict[str, list[float]], float]:
    """Sums over all tokens of |g|^2, <g, g*>, |g*|^2 and |g - g*|^2 by configuration; and how far k3's gradient is from pi - ref."""
    parts: dict[str, list[Tensor]] = {name: [] for name, _ in configurations}
    generator = torch.Generator(device).manual_seed(seed)
    errors = []
    for start in range(0, size.tokens, size.chunk):
        log_pi, log_ref = drawn_log_probs(min(size.chunk, size.tokens - start), size, kl, generator)
        d, policy = log_pi - log_ref, log_pi.exp()
        true = logit_gradient(policy, d)
        true_square = _dot(true, true)
        for name, weight in configurations:
            gradient = logit_gradient(policy, weight(d))
            away = gradient - true  # from the sums alone, cancellation would leave 1e-8
            parts[name].append(
                torch.stack([_dot(gradient, gradient), _dot(gradient, true), true_square, _dot(away, away)])
            )
            if name == "k3-in-loss":
                errors.append((gradient - (policy - log_ref.exp())).abs().max())
    sums = {name: torch.stack(chunks).cpu().double().sum(0).tolist() for name, chunks in parts.items()}
    return sums, float(torch.stack(errors).max())


def drawn_log_probs(tokens: int, size: Size, kl: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """log pi and log ref (tokens, V): normal reference logits and a normal step, whose length gives each token KL(pi||ref) = `kl`."""
    device = generator.device
    reference, step = (
        torch.randn(tokens, size.vocabulary, generator=generator, device=device, dtype=size.dtype) for _ in range(2)
    )
    reference *= _ENTROPY_SCALE
    log_ref = torch.log_softmax(reference, -1)
    # the KL of a short step grows with its square, so rescaling converges fast near the reference, and fast enough far from it
    length = torch.full((tokens, 1), (2 * kl) ** 0.5, device=device, dtype=size.dtype)
    for _ in range(_RESCALINGS):
        log_pi = torch.log_softmax(reference + length * step, -1)
        reached = (log_pi.exp() * (log_pi - log_ref)).sum(-1, keepdim=True)
        if float((reached / kl - 1).abs().max()) < _KL_ACCURACY:
            break
        length = length * (kl / reached.clamp(min=kl / 100)).sqrt()
    return log_pi, log_ref


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(dtype=None if a.device.type == "mps" else torch.float64)  # MPS has no float64


def _row(name: str, kl: float, sums: list[float], eps: float) -> ScaleRow:
    own, product, true, away = sums
    silent = own <= 0.01 * eps * true  # rounding alone gives about that much
    cosine = None if silent else product / (own * true) ** 0.5
    return ScaleRow(name, kl, (away / true) ** 0.5, (own / true) ** 0.5, cosine)
