"""The record of what a formula is."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.model import EstimatorName, Gradient
from klaudit.theory import ScoreWeight, range_text

Ratio: TypeAlias = Literal["none", "attached", "detached", "sequence"]
FormulaLevel: TypeAlias = Literal["token", "sequence"]
Direction: TypeAlias = Literal["pi||ref", "ref||pi", ""]


class Limits(Struct, frozen=True):
    """What clamps and exponentials do far from the reference.

    `live` is the range of d (nats) around 0 outside which a clamp is in force, None without a clamp; `of_average`: the clamp stands on an
    average over tokens, whose d that is.  `unbounded_exp`: nothing bounds the
    argument of exp below what float32 holds; `clamp_after_exp`: a clamp or a choice comes only after it, which leaves a NaN gradient;
    `sign_flips`: where a clamp is in force the gradient points the other way.
    """

    live: tuple[float, float] | None = None
    of_average: bool = False
    unbounded_exp: bool = False
    clamp_after_exp: bool = False
    sign_flips: bool = False

    @property
    def range_text(self) -> str:
        """`live` in words and to three digits (`-2.61 < d < 11`), empty without a clamp."""
        return "" if self.live is None else range_text(*(float(f"{bound:.3g}") for bound in self.live))


class Classification(Struct, frozen=True):
    """What a formula is.

    On sampled tokens its value is scale * k(d) + shift for the named estimator (per sampled token; `scale` alone for a sum over the
    vocabulary, whose `direction` is given).  `gradient` says how it acts in a loss and `weight` is dk/dlog pi there per unit of scale,
    None where the theory's basis does not hold it.  `ratio`: a weight pi/pi_old in the formula, and whether gradient flows through it.
    `truncated`: that sum is over some entries only.  `probability_weighted`: the value scales with pi itself, as p * (log p - log q)
    does.  `is_of_d`: an unknown form is a function of d alone.  `only_where`: the range of d outside which a clamp changes it, where
    that ends near the reference; `slope_elsewhere` (per unit of scale) and `value_elsewhere` are what it is there, empty for 0 and for
    constants.  `weight_is_clipped`: the weight pi/pi_old stops at bounds.  `per_entry`: a sum over the vocabulary divided by its size,
    which `scale` leaves out.  `level`: whose d that is, a token's or that of a whole sequence, the sum of its tokens'.  `why_unknown`:
    why the estimator is not known, where that has a reason of its own.  `samples` are (d, value, slope).
    """

    estimator: EstimatorName
    gradient: Gradient
    scale: float
    shift: float = 0.0
    weight: ScoreWeight | None = None
    ratio: Ratio = "none"
    direction: Direction = ""
    truncated: bool = False
    probability_weighted: bool = False
    is_of_d: bool = False
    only_where: str = ""
    slope_elsewhere: str = ""
    value_elsewhere: str = ""
    weight_is_clipped: bool = False
    per_entry: bool = False
    level: FormulaLevel = "token"
    why_unknown: str = ""
    samples: tuple[tuple[float, float, float], ...] = ()
    limits: Limits = Limits()
