"""Which row of the theory's table a formula is, where it stands."""

from __future__ import annotations

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import Formula
from klaudit.theory import FORWARD, Row, look_up


def row_of(formula: Formula, what: Classification) -> Row:
    """The row of one variant; a row with verdict `unknown` where the table has none."""
    row = _whole_row_of(formula, what)
    if what.only_where and row.verdict not in ("unknown", "no-gradient"):
        elsewhere = "constant" if row.placement == "reward" else "0"
        weight = f"{row.weight_text} where {what.only_where}, {elsewhere} elsewhere"
        return Row(row.estimator, row.placement, row.gradient, None, weight, "neither KL", "biased")
    return row


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
