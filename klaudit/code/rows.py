"""Which row of the theory's table a formula is, where it stands."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import Formula
from klaudit.model import Verdict
from klaudit.theory import FORWARD, REVERSE, Row, ScoreWeight, cut, look_up, look_up_variant


def row_of(formula: Formula, what: Classification) -> Row:
    """The row of one variant; a row with verdict `unknown` where the table has none."""
    row = _whole_row_of(formula, what)
    if what.weight_is_clipped and row.verdict in ("unbiased", "unbiased-per-token"):
        row = replace(row, weight_text=f"{row.weight_text} where the ratio pi/pi_old is not clipped")
    elsewhere = what.value_elsewhere if row.placement == "reward" else what.slope_elsewhere
    return cut(row, what.only_where, elsewhere) if what.only_where else row


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
    if formula.placement == "reward" and what.estimator == "k1" and (averaged := _averaged(formula)) is not None:
        return averaged
    if formula.placement == "reward" or what.gradient == "score":
        plain = look_up(what.estimator, "reward", "score")
        if formula.placement == "loss" and what.estimator == "k1" and what.level != "sequence":
            plain = look_up_variant("k1", "reward", "no-return-to-go")  # each token's own penalty times its own score
        if formula.attached and plain.verdict == "unbiased":
            both = f"{plain.weight_text}, and what flows through log pi besides"
            return replace(plain, weight=None, weight_text=both, descends="what is not known", verdict="unknown")
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
    if what.level == "sequence" and not formula.detached and (of_sequences := _of_sequences(what)) is not None:
        return of_sequences
    if what.estimator == "unknown" and what.weight is not None and not formula.detached and what.ratio == "none":
        return _of_weight(what, what.weight)
    return look_up(what.estimator, "loss", "none" if formula.detached else what.gradient)


def _of_weight(what: Classification, weight: ScoreWeight) -> Row:
    """No estimator of the table, but its score weight is known, and that is what decides."""
    verdict: Verdict = (
        "no-gradient"
        if weight.is_zero
        else "no-regularisation"
        if weight.is_constant
        else "unbiased-per-token"
        if weight.is_unbiased
        else "biased"
    )
    descends = "nothing on-policy" if weight.is_constant else REVERSE if weight.is_unbiased else "neither KL exactly"
    return Row("unknown", "loss", what.gradient, weight, str(weight), descends, verdict)


def _of_sequences(what: Classification) -> Row | None:
    """The row of a function of a whole sequence's d, None where the table has none of its own."""
    k2 = what.gradient == "straight-through-k2" or (what.estimator, what.gradient) == ("k2", "pathwise")
    if not k2 and what.gradient != "pathwise":
        return None
    row = look_up_variant("k2" if k2 else what.estimator, "loss", "sequence-sum")
    return None if row.verdict == "unknown" else replace(row, estimator=what.estimator, gradient=what.gradient)


def _averaged(formula: Formula) -> Row | None:
    """k1 in a reward, averaged before: over the length it is weighted anew; over the batch every sample gets the same number.

    None without an average, or where a division by the group's spread says more.
    """
    if formula.averaged == "all":
        weight = "the mean of d, the same for all that it goes over"
        return Row("k1", "reward", "score", None, weight, "what is not known", "unknown")
    if formula.averaged == "length" and formula.group_std is None:
        return look_up_variant("k1", "reward", "length-mean")
    return None
