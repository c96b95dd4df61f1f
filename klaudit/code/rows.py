"""Which row of the theory's table a formula is, where it stands."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import Formula
from klaudit.theory import FORWARD, REVERSE, Row, cut, look_up, look_up_variant


def row_of(formula: Formula, what: Classification) -> Row:
    """The row of one variant; a row with verdict `unknown` where the table has none."""
    row = _whole_row_of(formula, what)
    return cut(row, what.only_where) if what.only_where else row


def _truncated(formula: Formula, what: Classification) -> Row:
    """A sum over the likeliest entries: its slope lacks the tail's, and unless renormalised it pushes mass out of the top even at d = 0."""
    if formula.placement == "loss" and (formula.detached or what.gradient == "none"):
        return look_up("unknown", "loss", "none")
    is_reverse = what.direction == "pi||ref"
    terms = "pi*(log pi - log ref)" if is_reverse else "ref*(log ref - log pi)"
    weight = f"sum over the top-k entries of the vocabulary of {terms}"
    descends = f"{REVERSE if is_reverse else FORWARD} without the tail of the vocabulary"
    if formula.placement == "reward":
        return Row("unknown", "reward", "score", None, weight, descends, "biased")
    return Row("unknown", "loss", what.gradient, None, weight, descends, "biased")


def _whole_row_of(formula: Formula, what: Classification) -> Row:
    if formula.may_be_weighted:
        weight = "not known: what multiplies it may carry a gradient"
        return Row(what.estimator, "loss", what.gradient, None, weight, "what is not known", "unknown")
    if what.truncated:
        return _truncated(formula, what)
    if formula.placement == "reward" or what.gradient == "score":
        plain = look_up(what.estimator, "reward", "score")
        if formula.group_std is not None and plain.verdict == "unbiased":
            row = look_up_variant(what.estimator, "reward", "group-std")
            return row if not formula.group_std else replace(plain, verdict="unknown")
        return plain
    if what.direction == "ref||pi":
        weight = "sum over the vocabulary of ref*(log ref - log pi)"
        return Row("unknown", "loss", "pathwise", None, weight, FORWARD, "biased")
    if what.gradient == "importance-weighted" and what.ratio == "sequence":
        weight = "not a function of the token's d"
        return Row(what.estimator, "loss", "importance-weighted", None, weight, "neither KL exactly", "biased")
    return look_up(what.estimator, "loss", "none" if formula.detached else what.gradient)
