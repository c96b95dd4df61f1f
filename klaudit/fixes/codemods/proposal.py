"""What a codemod offers: edits and what they promise, which the analysis of the edited file must confirm."""

from __future__ import annotations

from dataclasses import dataclass

from klaudit.code.result import Formula, Place
from klaudit.model import Edit, EstimatorName, Finding


class CannotMendError(ValueError):
    """A formula that is not rewritten; the message says why, in words for its owner."""


@dataclass(frozen=True, slots=True)
class Case:
    """A finding, the formula that it is about, and the findings beside it on the same formula."""

    finding: Finding
    formula: Formula
    beside: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Promise:
    """What the formula is afterwards; None where that stays as it is.  `is_unbiased`: it has the gradient of KL(pi||ref), and no flaw.

    `reveals` are findings that may come to light because this mistake no longer hides them.  `inside` is the number that
    multiplies the penalty inside its sum with the rest of the loss, None where the whole coefficient stays: what stands outside the sum
    applies to the policy term as well, and no longer shows in the coefficient.
    """

    placement: Place
    estimator: EstimatorName | None = None
    is_unbiased: bool = False
    reveals: frozenset[str] = frozenset()
    keeps_coefficient: bool = True
    inside: float | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """`target` says in a few words what is reached; `notes` what the user should know of it."""

    target: str
    title: str
    edits: tuple[Edit, ...]
    promise: Promise
    notes: tuple[str, ...] = ()
