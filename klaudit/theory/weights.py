"""Score weights: the w(d) of E_pi[w(d) grad log pi], as sums over a small basis of functions of d = log pi - log pi_ref (nats).

The gradient of KL(pi||ref) is E_pi[d grad log pi] and E_pi[c grad log pi] = 0, so a weight is unbiased exactly when it is
beta*d + const (Schulman 2020; Tang & Munos 2025, arXiv 2506.09477; Liu et al. 2025, arXiv 2510.01555).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

Basis: TypeAlias = Literal["d", "d**2", "abs(d)", "sign(d)", "exp(d)", "exp(-d)", "1"]

BASIS: dict[Basis, Callable[[float], float]] = {
    "d": lambda d: d,
    "d**2": lambda d: d * d,
    "abs(d)": abs,
    "sign(d)": lambda d: math.copysign(1.0, d) if d else 0.0,
    "exp(d)": math.exp,
    "exp(-d)": lambda d: math.exp(-d),
    "1": lambda d: 1.0,
}
_SHOWN_AS = {"d**2": "d^2", "abs(d)": "|d|"}
_ORDER: tuple[Basis, ...] = ("d", "d**2", "abs(d)", "sign(d)", "exp(d)", "exp(-d)", "1")


class ScoreWeight(Struct, frozen=True):
    """A sum of coefficients times basis functions of d, as sorted pairs; the empty sum is zero."""

    parts: tuple[tuple[Basis, float], ...]

    @classmethod
    def of(cls, **parts: float) -> ScoreWeight:
        """Build from keywords: `linear` d, `square` d^2, `modulus` |d|, `sign`, `growth` exp(d), `decay` exp(-d), `constant`."""
        names: dict[str, Basis] = {
            "linear": "d", "square": "d**2", "modulus": "abs(d)", "sign": "sign(d)", "growth": "exp(d)", "decay": "exp(-d)",
            "constant": "1",
        }  # fmt: skip
        return cls.from_pairs((names[name], value) for name, value in parts.items())

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Basis, float]]) -> ScoreWeight:
        total: dict[Basis, float] = {}
        largest: dict[Basis, float] = {}
        for basis, value in pairs:
            total[basis] = total.get(basis, 0.0) + value
            largest[basis] = max(largest.get(basis, 0.0), abs(value))
        kept = [
            (basis, total[basis]) for basis in _ORDER if basis in total and abs(total[basis]) > 1e-12 * largest[basis]
        ]
        return cls(tuple(kept))

    def __call__(self, d: float) -> float:
        """The weight at log-ratio `d` (nats)."""
        return sum(value * BASIS[basis](d) for basis, value in self.parts)

    def __add__(self, other: ScoreWeight) -> ScoreWeight:
        return ScoreWeight.from_pairs((*self.parts, *other.parts))

    def __neg__(self) -> ScoreWeight:
        return self.scaled(-1.0)

    def scaled(self, factor: float) -> ScoreWeight:
        return ScoreWeight.from_pairs((basis, value * factor) for basis, value in self.parts)

    def __getitem__(self, basis: Basis) -> float:
        return dict(self.parts).get(basis, 0.0)

    @property
    def is_zero(self) -> bool:
        return not self.parts

    @property
    def is_constant(self) -> bool:
        """No expected gradient on-policy (zero counts as constant)."""
        return all(basis == "1" for basis, _ in self.parts)

    @property
    def is_unbiased(self) -> bool:
        """beta*d + const with beta > 0: the expected gradient is that of beta*KL(pi||ref)."""
        return self["d"] > 0 and all(basis in ("d", "1") for basis, _ in self.parts)

    def __str__(self) -> str:
        if not self.parts:
            return "0"
        shown = ""
        positive_first = sorted(self.parts, key=lambda part: (part[1] < 0, _ORDER.index(part[0])))
        for basis, value in positive_first:
            name = _SHOWN_AS.get(basis, basis)
            size = f"{abs(value):.6g}"
            body = size if basis == "1" else name if abs(value) == 1 else f"{size}*{name}"
            shown += (" - " if value < 0 else " + ") + body if shown else ("-" if value < 0 else "") + body
        return shown


ZERO = ScoreWeight(())
