"""What the analysis of a file gives."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.code import names
from klaudit.code.conditions import Constant
from klaudit.code.evaluation.classification import Classification
from klaudit.code.graph import Node
from klaudit.model import Confidence, Problem, Span

Place: TypeAlias = Literal["loss", "reward", "metric", "unknown"]
Averaged: TypeAlias = Literal["", "length", "all"]
Role: TypeAlias = Literal["log pi", "log pi_old", "log pi_ref"]


class AtomSeen(Struct, frozen=True):
    """A tensor of a formula, whose log-probability it is and why."""

    role: Role
    text: str
    reason: str
    detached: bool


class Variant(Struct, frozen=True):
    """What the formula is where settings choose: `when` is empty where nothing does.

    `home` is where this way of it is written, `node` its graph and `assignment` the settings under which it was evaluated; `values` are
    all the values of the settings that lead to it, by the setting as the code spells it (`self.config.kl_loss_type`).
    """

    when: str
    what: Classification
    is_default: bool = False
    home: Span | None = None
    node: Node | None = None
    assignment: tuple[tuple[str, Constant], ...] = ()
    values: tuple[tuple[str, frozenset[Constant]], ...] = ()


class Knob(Struct, frozen=True):
    """A coefficient: the parameter or configuration attribute it is, and its number where a default is known.

    `is_guess`: it multiplies (or divides) the formula, and nothing says that it is a coefficient: a weight of the tokens, or a switch.
    """

    name: str
    number: float | None
    inverse: bool = False
    is_guess: bool = False


class KlDiv(Struct, frozen=True):
    """A use of torch.nn.functional.kl_div: what is wrong with its arguments, in words."""

    span: Span
    wrong: tuple[str, ...]


class Formula(Struct, frozen=True):
    """One KL formula and where its value goes.

    `span` and `text` are the expression in the file under analysis: the formula, or the call that leads to it in another file (then
    `home` is where it is written).  `difference` is where log pi and log pi_ref are set against each other, `joined` the sum with the rest
    of the loss or reward.  `factor` is the sign and the numbers on the way to the sink; the whole coefficient is factor * the
    variant's scale * the knobs.  A loss adds a penalty, a reward subtracts it.
    """

    span: Span
    text: str
    symbol: str
    home: Span
    difference: Span | None
    joined: Span | None
    sink: Span
    placement: Place
    sink_kind: str
    variants: tuple[Variant, ...]
    atoms: tuple[AtomSeen, ...]
    factor: float
    knobs: tuple[Knob, ...]
    condition: str
    settings: tuple[str, ...]
    detached: bool
    sink_is_live: bool
    attached: bool
    standalone: bool
    normalised_by_spread: bool  # of a group, of the batch, or of values of which nothing says what they are
    through_unknown: str
    path: tuple[Span, ...]
    confidence: Confidence
    external: str = ""  # the function that computes it, where its code is not in the tree
    chosen_by: tuple[str, ...] = ()
    call: tuple[Span, str] | None = None
    log_of_softmax: Span | None = None
    kl_div: KlDiv | None = None
    is_sampled: bool = (
        True  # its log-probabilities are known to be those of sampled tokens, not of the whole vocabulary
    )
    is_own: bool = (
        True  # it, or the call that leads to it, stands in the function that this is said of, not in one that it calls
    )
    only_calls: bool = False  # both the formula and the sum that it joins stand in functions that this one calls
    group_std: str | None = None  # when it is divided by the spread of its group: "" for always, None for never
    averaged: Averaged = ""  # in the reward: over the length of each sequence, or over all that was given
    judged_elsewhere: bool = False  # it joins the loss or reward in another file, whose own analysis says so

    @property
    def may_be_weighted(self) -> bool:
        """Something of which nothing is known multiplies it in a loss: were that a ratio with a gradient, k1 would be unbiased."""
        return self.placement == "loss" and any(
            knob.is_guess and not knob.inverse and not names.is_of_settings(knob.name) for knob in self.knobs
        )

    @property
    def in_force(self) -> tuple[Variant, ...]:
        """What holds when nothing is set: the variants that the defaults choose, all where no default is known."""
        return tuple(variant for variant in self.variants if variant.is_default) or self.variants

    @property
    def what(self) -> Classification:
        """The variant that holds by default, the first where none is known."""
        return self.in_force[0].what

    def coefficient(self, what: Classification) -> float | None:
        """Signed, in front of the estimator; None where a knob's number is not known."""
        if what.per_entry:
            return None
        value = self.factor * what.scale
        for knob in self.knobs:
            if knob.number is None or (knob.inverse and not knob.number):
                return None
            value = value / knob.number if knob.inverse else value * knob.number
        return value

    @property
    def has_negative_knobs(self) -> bool:
        """The numbers that are known of its coefficient by name make it negative (`BETA = -0.1`)."""
        return sum(knob.number is not None and knob.number < 0 for knob in self.knobs) % 2 == 1

    def sign(self, what: Classification) -> int:
        """+1 where a variant is added to the sink, -1 where it is subtracted."""
        return -self._written_sign(what) if self.has_negative_knobs else self._written_sign(what)

    def has_wrong_sign(self, what: Classification) -> bool:
        """It drives the policy away from the reference.  A reward that is nothing but the penalty may be turned later."""
        return self._leads_away(what, self.sign(what))

    def is_turned(self, what: Classification) -> bool:
        """The same for a positive coefficient, whatever its default is: what code does to the number that a launch gives it."""
        return self._leads_away(what, self._written_sign(what))

    def _written_sign(self, what: Classification) -> int:
        return 1 if self.factor * what.scale > 0 else -1

    def _leads_away(self, what: Classification, sign: int) -> bool:
        if self.through_unknown or (what.estimator == "unknown" and not what.direction):
            return False
        return sign < 0 if self.placement == "loss" else sign > 0 and not self.standalone


class CodeResult(Struct, frozen=True):
    path: str
    formulas: tuple[Formula, ...]
    problems: tuple[Problem, ...] = ()
