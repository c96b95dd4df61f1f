"""The one table: what each estimator and placement descends.  Messages, docs and the tensor checks are all made from it.

d = log pi(token) - log pi_ref(token), in nats, on tokens sampled from pi; rho = pi/pi_old; w = score weight.
Every row is asserted by exact enumeration in the tensor checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.theory.weights import ZERO, ScoreWeight

REVERSE = "KL(pi||ref)"
FORWARD = "KL(ref||pi)"


@dataclass(frozen=True, slots=True)
class Estimator:
    """A per-token estimator: its value k(d) and its slope dk/dlog pi, both as sums over the same basis."""

    name: EstimatorName
    formula: str
    value: ScoreWeight
    slope: ScoreWeight


ESTIMATORS: dict[EstimatorName, Estimator] = {
    e.name: e
    for e in (
        Estimator("k1", "d", ScoreWeight.of(linear=1), ScoreWeight.of(constant=1)),
        Estimator("k2", "d^2/2", ScoreWeight.of(square=0.5), ScoreWeight.of(linear=1)),
        Estimator(
            "k3",
            "exp(-d) - 1 + d",
            ScoreWeight.of(decay=1, constant=-1, linear=1),
            ScoreWeight.of(constant=1, decay=-1),
        ),
        Estimator("abs", "|d|", ScoreWeight.of(modulus=1), ScoreWeight.of(sign=1)),
        Estimator(
            "reversed-k3",
            "exp(d) - 1 - d",
            ScoreWeight.of(growth=1, constant=-1, linear=-1),
            ScoreWeight.of(growth=1, constant=-1),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration.  `weight` is None where it is not a function of the sampled token's d alone (full-vocabulary sums, unknown)."""

    estimator: EstimatorName
    placement: Placement
    gradient: Gradient
    weight: ScoreWeight | None
    weight_text: str
    descends: str
    verdict: Verdict
    note: str = ""

    @property
    def id(self) -> str:
        return f"{self.estimator}-in-{self.placement}" + (
            "" if self.gradient in ("pathwise", "score") else f"-{self.gradient}"
        )


def _row(
    estimator: EstimatorName,
    placement: Placement,
    gradient: Gradient,
    weight: ScoreWeight,
    descends: str,
    verdict: Verdict,
    note: str = "",
) -> Row:
    return Row(estimator, placement, gradient, weight, str(weight), descends, verdict, note)


_D = ScoreWeight.of(linear=1)
_PER_TOKEN = "exact per token; over a sequence a semi-gradient (a token gets no credit for the KL of later tokens)"


def _rows() -> Iterable[Row]:
    k1, k2, k3, modulus, reverse = (ESTIMATORS[name] for name in ("k1", "k2", "k3", "abs", "reversed-k3"))
    yield _row(
        "k1", "reward", "score", k1.value, REVERSE, "unbiased", "exact for whole sequences, summed or as return-to-go"
    )
    yield _row("k2", "reward", "score", k2.value, f"E_pi[k2] - {REVERSE}", "biased", "vanishes near the reference")
    yield _row(
        "k3",
        "reward",
        "score",
        k3.value,
        f"{REVERSE} - {FORWARD}",
        "biased",
        "unbounded below: descending it can collapse the policy",
    )
    yield _row("abs", "reward", "score", modulus.value, "E_pi|d| - 2*TV", "biased")
    yield _row(
        "reversed-k3",
        "reward",
        "score",
        reverse.value,
        f"a chi-square divergence minus {REVERSE}",
        "biased",
        "heavy tail",
    )
    yield _row(
        "k1", "loss", "pathwise", k1.slope, "nothing on-policy; off-policy -KL(pi_old||pi)", "no-regularisation",
        "its expected gradient is zero on-policy and pushes away from pi_old off-policy",
    )  # fmt: skip
    yield _row("k2", "loss", "pathwise", k2.slope, REVERSE, "unbiased-per-token", _PER_TOKEN)
    yield _row("k3", "loss", "pathwise", k3.slope, FORWARD, "biased", "mode covering; per token")
    yield _row("abs", "loss", "pathwise", modulus.slope, "2*TV(pi, ref)", "biased")
    yield _row(
        "reversed-k3",
        "loss",
        "pathwise",
        reverse.slope,
        "a chi-square divergence (1/2 sum pi^2/ref)",
        "biased",
        "heavy tail",
    )
    for name in ("k1", "k2", "k3", "abs"):
        yield _row(name, "loss", "straight-through-k2", _D, REVERSE, "unbiased-per-token", _PER_TOKEN)  # type: ignore[arg-type]
    # rho attached: d(rho k)/dlog pi = rho (k + k'), and the expectation under pi_old of rho f is that of f under pi
    for estimator, descends, verdict, note in (
        (k1, REVERSE, "unbiased-per-token", "off-policy too; high variance"),
        (k2, "E_pi[k2]", "biased", "the attached ratio adds d^2/2"),
        (k3, REVERSE, "unbiased-per-token", "off-policy too; per sample equal to a detached ratio times k2"),
        (modulus, "E_pi|d|", "biased", ""),
    ):
        yield _row(
            estimator.name, "loss", "importance-weighted", estimator.value + estimator.slope, descends, verdict, note
        )
    yield Row(
        "full",
        "loss",
        "pathwise",
        None,
        "sum over the vocabulary of pi*(log pi - log ref)",
        REVERSE,
        "unbiased-per-token",
        "least variance; " + _PER_TOKEN,
    )
    yield Row(
        "full", "reward", "score", None, "the whole distribution's KL at each position", f"{REVERSE} of later tokens only", "biased",
        "a position's own KL does not depend on the token sampled there",
    )  # fmt: skip
    for name in (*ESTIMATORS, "full", "unknown"):
        yield _row(name, "loss", "none", ZERO, "nothing", "no-gradient", "computed without gradient")  # type: ignore[arg-type]


TABLE: dict[tuple[EstimatorName, Placement, Gradient], Row] = {
    (r.estimator, r.placement, r.gradient): r for r in _rows()
}


def look_up(estimator: EstimatorName, placement: Placement, gradient: Gradient) -> Row:
    """The row of a configuration; a row with verdict `unknown` where the table has none."""
    if placement == "reward":
        gradient = "score"  # a rewarded value is detached: only its value counts, straight-through or not
    if row := TABLE.get((estimator, placement, gradient)):
        return row
    return Row(estimator, placement, gradient, None, "unknown", "unknown", "unknown")


@dataclass(frozen=True, slots=True)
class Sum:
    """What several active terms do together."""

    weight: ScoreWeight | None
    weight_text: str
    verdict: Verdict


def judge_sum(terms: Iterable[tuple[Row, float | None, Verdict]]) -> Sum:
    """The summed score weight of active terms `(row, coefficient, that term's own verdict)`, and its verdict.

    A single term keeps its own verdict, whatever its coefficient.  Rewarded k1 or k3 together with the same estimator and coefficient
    in the loss is exactly unbiased over sequences: the reward gives E[k grad log pi], the loss E[grad k], and their sum is grad E[k].
    """
    terms = list(terms)
    if not terms:
        return Sum(ZERO, "0", "inactive")
    texts = [_times(coefficient, row.weight_text) for row, coefficient, _ in terms]
    if len(terms) == 1:
        row, coefficient, verdict = terms[0]
        weight = row.weight.scaled(coefficient) if row.weight is not None and coefficient is not None else None
        return Sum(weight, str(weight) if weight is not None else texts[0], verdict)
    verdicts = {verdict for _, _, verdict in terms}
    if any(row.weight is None or coefficient is None for row, coefficient, _ in terms):
        return Sum(None, " + ".join(texts), verdicts.pop() if len(verdicts) == 1 else "unknown")
    total = ZERO
    for row, coefficient, _ in terms:
        total = total + row.weight.scaled(coefficient)  # type: ignore[union-attr, arg-type]
    return Sum(total, str(total), _verdict_of(total, terms, verdicts))


def _verdict_of(total: ScoreWeight, terms: list[tuple[Row, float | None, Verdict]], verdicts: set[Verdict]) -> Verdict:
    if "rescaled" in verdicts:
        return "rescaled" if verdicts <= {"rescaled", "unbiased", "unbiased-per-token"} else "biased"
    if total.is_zero:
        return "no-gradient"
    if total.is_constant:
        return "no-regularisation"
    if not total.is_unbiased:
        return "biased"
    if all(verdict in ("unbiased", "unbiased-per-token") for verdict in verdicts):
        return "unbiased" if verdicts == {"unbiased"} else "unbiased-per-token"
    both = {(row.placement, row.estimator) for row, _, _ in terms}
    same = any({("reward", name), ("loss", name)} == both for name in ("k1", "k3"))
    return "unbiased" if same else "unbiased-per-token"


def _times(coefficient: float | None, weight: str) -> str:
    body = f"({weight})" if " " in weight else weight
    return f"beta*{body}" if coefficient is None else weight if coefficient == 1 else f"{coefficient:.6g}*{body}"
