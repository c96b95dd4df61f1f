"""Where a sampled score weight follows its formula, and what becomes of it beyond: a clamp's dead zone, a flipped sign, an overflow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

Weights: TypeAlias = Callable[
    [Sequence[float]], Sequence[tuple[float, float]]
]  # of each d: the weight, and what it was computed from

_FURTHEST = 30.0  # nats: no token's log-ratio comes near
_STEP = 0.1
_BISECTIONS = 40


class LiveRange(Struct, frozen=True):
    """The range of d (nats) in which the weight follows its formula, infinite where no bound was found, and what lies beyond."""

    low: float
    high: float
    notes: tuple[str, ...] = ()

    @property
    def is_everywhere(self) -> bool:
        return math.isinf(self.low) and math.isinf(self.high)


EVERYWHERE = LiveRange(-math.inf, math.inf)


def live_range(weights: Weights, formula: Callable[[float], float], tolerance: float) -> LiveRange:
    """Look outwards from d = 0, to 30 nats on both sides, for the first d where `weights` departs from `formula`.

    `tolerance` is relative to the weight and to the magnitude of the numbers that it is the difference of.
    """
    low, note_low = _bound(weights, formula, tolerance, -1)
    high, note_high = _bound(weights, formula, tolerance, 1)
    return LiveRange(low, high, tuple(note for note in (note_low, note_high) if note))


def _bound(weights: Weights, formula: Callable[[float], float], tolerance: float, side: int) -> tuple[float, str]:
    def departs(d: float, seen: tuple[float, float]) -> bool:
        weight, magnitude = seen
        expected = formula(d)
        return not abs(weight - expected) <= tolerance * (max(abs(expected), 1.0) + abs(magnitude))  # a NaN departs

    steps = [side * _STEP * index for index in range(1, round(_FURTHEST / _STEP) + 1)]
    beyond = next((d for d, seen in zip(steps, weights(steps), strict=True) if departs(d, seen)), None)
    if beyond is None:
        return side * math.inf, ""
    near, far = beyond - side * _STEP, beyond
    for _ in range(_BISECTIONS):
        middle = (near + far) / 2
        near, far = (near, middle) if departs(middle, weights([middle])[0]) else (middle, far)
    return far, f"{_behaviour(weights, formula, far, side)} for d {'<' if side < 0 else '>'} {far:.4g}"


def _behaviour(weights: Weights, formula: Callable[[float], float], bound: float, side: int) -> str:
    at = [bound + side * distance for distance in (0.05, 0.5, 2.0)]
    seen = [weight for weight, _ in weights(at)]
    if not all(math.isfinite(weight) for weight in seen):
        return "not finite"
    if not any(seen):
        return "no gradient"
    if max(seen) == min(seen) and seen[0] * formula(at[0]) > 0:
        return f"clamped at {seen[0]:.4g}"
    if all(weight * formula(d) < 0 for weight, d in zip(seen, at, strict=True)):
        return "the sign flips"
    return "departs from its formula"
