"""What a configuration descends, as data: weighted sums of named divergences between pi, ref and the sampling policy pi_old.

Everything is in nats.  `E_pi[...]` differentiates the sampling too; `E_old[...]` is an expectation under the fixed pi_old, so only the
integrand is differentiated; a `frozen` value was computed at rollout (pi = pi_old) and is a constant of the later updates.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Divergence: TypeAlias = Literal[
    "KL(pi||ref)", "KL(ref||pi)", "KL(pi_old||pi)", "KL(pi||pi_old)", "TV(pi, ref)", "chi2(pi||ref)",
    "E_pi[k2]", "E_pi|d|",
    "E_old[k2]", "E_old[k3]", "E_old|d|", "E_old[exp(d) - d]",
    "E_pi[frozen k2]", "E_pi[frozen k3]", "E_pi[frozen |d|]", "E_pi[frozen exp(d) - d]",
]  # fmt: skip

REVERSE: Divergence = "KL(pi||ref)"
FORWARD: Divergence = "KL(ref||pi)"


class Objective(Struct, frozen=True):
    """A weighted sum of divergences; the empty sum is constant in the policy: nothing is descended."""

    parts: tuple[tuple[Divergence, float], ...] = ()

    @classmethod
    def of(cls, *parts: Divergence | tuple[Divergence, float]) -> Objective:
        return cls(tuple((part, 1.0) if isinstance(part, str) else part for part in parts))

    def __str__(self) -> str:
        shown = ""
        for name, value in self.parts:
            body = name if abs(value) == 1 else f"{abs(value):.6g}*{name}"
            shown += (" - " if value < 0 else " + ") + body if shown else ("-" if value < 0 else "") + body
        return shown or "nothing"


NOTHING = Objective()
