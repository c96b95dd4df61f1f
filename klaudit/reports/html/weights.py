"""The score weight of a set-up as a function that can be drawn, in units of its coefficient."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from klaudit.model import Setup, Term, Verdict
from klaudit.theory import TABLE, VARIANTS, ZERO, Row, ScoreWeight

_ROWS = {
    (row.estimator, row.placement, row.weight_text): row for row in reversed((*TABLE.values(), *VARIANTS.values()))
}  # the table's own rows before variants


class Shape(Struct, frozen=True):
    """What is trained with, whatever its strength: `weight` is w(d)/beta, beta being the largest coefficient of several terms.

    `title` names the terms (`k3 in the loss`), `descends` the objective where the theory has a single one.
    """

    title: str
    formula: str
    weight: ScoreWeight
    descends: str
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        return self.weight.is_unbiased


def shape_of(setup: Setup) -> Shape | None:
    """The shape of the active terms' sum; None where it is no function of the token's d, or not known."""
    active = [term for term in setup.terms if term.active is not False and term.placement != "metric"]
    rows = [row for term in active if (row := _row(term)) is not None]
    known = [row.weight for row in rows if row.weight is not None]
    if not active or len(known) < len(active) or any(term.normalised_by_group_std for term in active):
        return None
    if len(active) == 1:
        (term,) = active
        sign = -1.0 if term.coefficient is not None and term.coefficient < 0 else 1.0
        total = known[0].scaled(sign)
        title = f"{'minus ' if sign < 0 else ''}{_name(term)}"
        return Shape(title, str(total), total, rows[0].descends if sign > 0 else "", setup.verdict)
    coefficients = [term.coefficient for term in active if term.coefficient is not None]
    largest = max(map(abs, coefficients), default=0.0)
    if len(coefficients) < len(active) or not largest:
        return None
    total = ZERO
    for coefficient, weight in zip(coefficients, known, strict=True):
        total = total + weight.scaled(coefficient / largest)
    return Shape(" with ".join(map(_name, active)), str(total), total, "", setup.verdict)


def shapes(setups: Sequence[Setup]) -> dict[Shape, int]:
    """Every shape of the set-ups with how many have it, most frequent first."""
    counts: dict[Shape, int] = {}
    for setup in setups:
        if (shape := shape_of(setup)) is not None:
            counts[shape] = counts.get(shape, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].title, pair[0].formula)))


def why_no_shape(setup: Setup) -> str:
    """Why `shape_of` gives none, in words; empty where nothing is active."""
    active = [term for term in setup.terms if term.active is not False]
    if not active:
        return ""
    if any(term.normalised_by_group_std for term in active):
        return "divided by the group's standard deviation: no curve over d, and the coefficient has no effect"
    return "no curve over d: the weight or a coefficient cannot be known without running something"


def _row(term: Term) -> Row | None:
    """The row of the theory by which the term was judged; None where the judge knew better than any row."""
    return _ROWS.get((term.estimator, term.placement, term.score_weight))


def _name(term: Term) -> str:
    how = {"straight-through-k2": " straight-through", "importance-weighted": " importance-weighted"}
    return f"{term.estimator}{how.get(term.gradient, '')} in the {term.placement}"
