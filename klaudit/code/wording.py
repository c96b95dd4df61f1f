"""How findings speak of a formula: what it is, where, with which coefficient, and what it descends."""

from __future__ import annotations

import re

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import Formula, Knob, Variant
from klaudit.code.rows import row_of
from klaudit.model import Evidence
from klaudit.theory import FORWARD, REVERSE

_PLACE_OF_CALL = re.compile(r"@\d+:\d+")  # tells two calls apart where that matters; a reader has the line
_LONGEST = 90
_MOST_EVIDENCE = 12


def described(formula: Formula, *variants: Variant) -> str:
    """`k3 in the loss, coefficient beta = 0.04: \\`exp(x) - x - 1\\` with log pi = ..., log pi_ref = ...`."""
    estimators = list(dict.fromkeys(estimator(variant.what) for variant in variants))
    amounts = {amount(formula, variant.what) for variant in variants}
    coefficient = amounts.pop() if len(amounts) == 1 else " ".join(_knob(knob) for knob in formula.knobs)
    if len(variants) > 1:
        when = f" (chosen by {', '.join(map(shown, formula.chosen_by or formula.settings))})"
    else:
        when = f" when {shown(variants[0].when)}" if variants[0].when else ""
    atoms = ", ".join(dict.fromkeys(f"{atom.role} = {shown(atom.text)}" for atom in formula.atoms))
    return (
        f"{_listed(estimators)} in the {formula.placement}"
        + (f", coefficient {coefficient}" if coefficient else "")
        + f"{when}: `{quoted(formula)}` with {atoms}"
    )


def _listed(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def estimator(what: Classification) -> str:
    if what.direction:
        divergence = REVERSE if what.direction == "pi||ref" else FORWARD
        return f"{divergence} truncated to the top-k entries of the vocabulary" if what.truncated else divergence
    return "a formula" if what.estimator == "unknown" else what.estimator


def amount(formula: Formula, what: Classification) -> str:
    """The coefficient by name and number, `beta / n = 0.01`; without the sign with which it is added."""
    knobs = " ".join(_knob(knob) for knob in formula.knobs)
    if what.per_entry:
        return f"{knobs or '1'} / size of the vocabulary"
    coefficient = formula.coefficient(what)
    size = None if coefficient is None else -abs(coefficient) if formula.has_negative_knobs else abs(coefficient)
    number = "" if size is None or (size == 1 and not knobs) else f"{size:.6g}"
    return f"{knobs} = {number}" if knobs and number else knobs or number


def _knob(knob: Knob) -> str:
    return ("/ " if knob.inverse else "") + shown(knob.name or "?")


def quoted(formula: Formula) -> str:
    """The expression on one line, cut where it is long."""
    text = " ".join(formula.text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def weights(formula: Formula, what: Classification) -> str:
    """The score weight beside the right one, and what it descends."""
    if what.probability_weighted:
        return "its value changes with log pi at the same d, so averaging it over samples counts the probability twice"
    row = row_of(formula, what)
    if row.verdict == "unknown":
        unnamed = "none of the known forms" if what.is_of_d else "not a function of d alone"
        weight = row.weight_text if row.weight is not None else unnamed if what.weight is None else str(what.weight)
        return f"score weight w(d) = {weight}; {REVERSE} has w(d) = d"
    if not formula.has_wrong_sign(what):
        text = f"score weight w(d) = {row.weight_text}, descends {row.descends}"
    elif has_no_direction(formula, what):
        text = f"subtracted, its score weight is w(d) = -1, which descends nothing on-policy; off-policy {OF_ROLLOUT}"
    else:
        text = f"with its sign turned right, score weight w(d) = {row.weight_text}, descends {row.descends}"
    return text if row.descends == REVERSE else f"{text}; {REVERSE} has w(d) = d"


def has_no_direction(formula: Formula, what: Classification) -> bool:
    """k1 in the loss, which regularises nothing with either sign."""
    return formula.placement == "loss" and row_of(formula, what).verdict == "no-regularisation"


OF_ROLLOUT = "KL(pi_old||pi)"
NORMALISED = (
    "divided by the standard deviation of its group: where the task reward of a group is constant the advantage is the z-score of the"
    " penalty alone, and the coefficient has no effect"
)


def shown(text: str) -> str:
    return _PLACE_OF_CALL.sub("", text)


def evidence(formula: Formula) -> tuple[Evidence, ...]:
    """The way from the formula to its sink, line by line."""
    lines = dict.fromkeys((span.path, span.line) for span in (*formula.path, formula.sink))
    return tuple(Evidence(formula.symbol, None, "code", path, line) for path, line in list(lines)[:_MOST_EVIDENCE])
