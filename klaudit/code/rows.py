"""Which row of the theory's table a formula is, where it stands."""

from __future__ import annotations

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import Formula
from klaudit.theory import FORWARD, Row, cut, look_up


def row_of(formula: Formula, what: Classification) -> Row:
    """The row of one variant; a row with verdict `unknown` where the table has none."""
    row = _whole_row_of(formula, what)
    return cut(row, what.only_where) if what.only_where else row


def _whole_row_of(formula: Formula, what: Classification) -> Row:
    if formula.placement == "reward" or what.gradient == "score":
        return look_up(what.estimator, "reward", "score")
    if what.direction == "ref||pi":
        weight = "sum over the vocabulary of ref*(log ref - log pi)"
        return Row("unknown", "loss", "pathwise", None, weight, FORWARD, "biased")
    if what.gradient == "importance-weighted" and what.ratio == "sequence":
        weight = "not a function of the token's d"
        return Row(what.estimator, "loss", "importance-weighted", None, weight, "neither KL exactly", "biased")
    return look_up(what.estimator, "loss", "none" if formula.detached else what.gradient)
