"""Configurations beyond estimator, placement and gradient: other importance ratios, whole-sequence forms, and what is done to a reward.

Each variant is a `Row` like those of the table; `gradient` stays the word of the report contract that describes it best.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from klaudit.model import EstimatorName, Placement, Verdict
from klaudit.theory.estimators import ESTIMATORS
from klaudit.theory.objectives import FORWARD, REVERSE, Objective
from klaudit.theory.table import PER_TOKEN, TABLE, Row

Variant: TypeAlias = Literal[
    "detached-ratio",  # sg(pi/pi_old) * k
    "self-ratio",  # exp(x - sg(x)) * k with x = log pi: value 1, gradient attached
    "sequence-mean-ratio",  # exp(mean over the sequence of log(pi/pi_old)) * k, attached
    "sequence-ratio",  # the product of the sequence's ratios, attached, times the sum of k
    "sequence-sum",  # k of the summed log-ratio of the sequence
    "group-mean",  # reward minus the group's mean, itself included
    "leave-one-out",  # reward minus the mean of the group's other samples
    "group-std",  # reward minus the group's mean, divided by the group's standard deviation
    "length-mean",  # the sequence's mean instead of its sum
    "no-return-to-go",  # discount 0: each token sees only its own penalty
    "discounted",  # return-to-go with discount below 1
]

_KL = Objective.of(REVERSE)


def _rows() -> Iterator[Row]:
    yield from _detached_ratios()
    yield from _self_ratios()
    yield from _sequence_forms()
    yield from _reward_forms()


def _detached_ratios() -> Iterator[Row]:
    """sg(rho)*k: E_old[rho k' grad log pi] = E_pi[k' grad log pi], so the on-policy row holds off-policy too."""
    for name in ESTIMATORS:
        plain = TABLE[name, "loss", "pathwise"]
        slope = plain.weight_text
        text = "rho" if slope == "1" else f"rho*({slope})" if " " in slope else f"rho*{slope}"
        descends = "nothing" if name == "k1" else plain.descends
        note = (
            "off-policy too"
            if plain.verdict == "unbiased-per-token"
            else "the ratio corrects the sampling, not the objective"
        )
        yield Row(
            name,
            "loss",
            "pathwise",
            plain.weight,
            text,
            descends,
            plain.verdict,
            note,
            plain.objective,
            plain.objective,
            "detached-ratio",
        )


def _self_ratios() -> Iterator[Row]:
    """On-policy the attached ratio; off-policy nothing corrects the sampling: E_old[(k + k') grad log pi]."""
    stale: dict[EstimatorName, Objective] = {
        "k1": Objective.of("E_old[k2]", ("KL(pi_old||pi)", -1)),
        "k3": Objective.of("E_old[k2]"),
    }
    for name in ESTIMATORS:
        attached = TABLE[name, "loss", "importance-weighted"]
        note = "on-policy only: the ratio is 1 in value, so staleness is not corrected"
        yield Row(
            name, "loss", "importance-weighted", attached.weight, attached.weight_text, attached.descends, attached.verdict, note,
            attached.objective, stale.get(name), "self-ratio",
        )  # fmt: skip


def _sequence_forms() -> Iterator[Row]:
    yield Row(
        "k3", "loss", "importance-weighted", None, "1 - exp(-d) + the sequence's mean of exp(-d) - 1 + d", "no divergence", "biased",
        "one token's ratio is diluted over the sequence; equal to the token ratio only at length 1", variant="sequence-mean-ratio",
    )  # fmt: skip
    for name in ("k1", "k3"):
        estimator = ESTIMATORS[name]
        yield Row(
            estimator.name, "loss", "importance-weighted", None, f"{estimator.slope} + the sequence's sum of {estimator.value}", REVERSE,
            "unbiased", "exact for whole sequences, off-policy too; the product of ratios has a high variance", _KL, _KL, "sequence-ratio",
        )  # fmt: skip
    yield Row(
        "k2", "loss", "pathwise", None, "the sequence's sum of d", REVERSE, "unbiased", "exact for whole sequences, on-policy",
        _KL, Objective.of("E_old[k2]"), "sequence-sum",
    )  # fmt: skip
    yield Row(
        "k3", "loss", "pathwise", None, "1 - exp(-(the sequence's sum of d))", FORWARD, "biased", "mode covering, for whole sequences",
        Objective.of(FORWARD), Objective.of("E_old[k3]"), "sequence-sum",
    )  # fmt: skip


def _reward_forms() -> Iterator[Row]:
    plain = TABLE["k1", "reward", "score"]

    def k1(variant: Variant, verdict: Verdict, note: str) -> Row:
        return Row("k1", "reward", "score", plain.weight, "d", REVERSE, verdict, note, _KL, None, variant)

    def inexact(variant: Variant, weight_text: str, descends: str, verdict: Verdict, note: str) -> Row:
        return Row("k1", "reward", "score", None, weight_text, descends, verdict, note, variant=variant)

    yield k1("group-mean", "unbiased", "scaled by exactly 1 - 1/G in groups of G: harmless")
    yield k1("leave-one-out", "unbiased", "no scale: the baseline is independent of the sample")
    yield inexact(
        "group-std", "(sum of d - group mean) / group std where the task reward is constant", f"{REVERSE} with a coefficient of its own",
        "rescaled", "in groups of constant task reward the advantage is a z-score of the penalty: beta has no effect",
    )  # fmt: skip
    yield inexact(
        "length-mean", "d / length", f"{REVERSE} weighted by 1/length", "biased",
        "scaled by about 1/length, so the direction changes where lengths vary",
    )  # fmt: skip
    yield k1("no-return-to-go", "unbiased-per-token", "the same expected gradient as k2 in the loss; " + PER_TOKEN)
    yield k1("discounted", "unbiased-per-token", "between the token's own penalty and the full return-to-go")


VARIANTS: dict[tuple[EstimatorName, Placement, str], Row] = {
    (row.estimator, row.placement, row.variant): row for row in _rows()
}


def look_up_variant(estimator: EstimatorName, placement: Placement, variant: Variant) -> Row:
    """The row of a variant; a row with verdict `unknown` where there is none."""
    if row := VARIANTS.get((estimator, placement, variant)):
        return row
    return Row(estimator, placement, "pathwise", None, "unknown", "unknown", "unknown", variant=variant)


def both_placements() -> tuple[tuple[Row, Row, Objective], ...]:
    """Rewarded and back-propagated with the same coefficient: E_pi[k grad log pi] + E_pi[grad k] = grad E_pi[k], over sequences too."""
    objectives: dict[EstimatorName, Objective] = {
        "k1": _KL,
        "k2": Objective.of("E_pi[k2]"),
        "k3": _KL,
        "abs": Objective.of("E_pi|d|"),
    }
    return tuple(
        (TABLE[name, "reward", "score"], TABLE[name, "loss", "pathwise"], descends)
        for name, descends in objectives.items()
    )
