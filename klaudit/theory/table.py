"""The one table: what each estimator and placement descends.  Messages, docs and the tensor checks are all made from it.

d = log pi(token) - log pi_ref(token), in nats, on tokens sampled from pi; rho = pi/pi_old; w = score weight.
Every row is asserted by exact enumeration in the tensor checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.theory.estimators import ESTIMATORS
from klaudit.theory.objectives import FORWARD, NOTHING, REVERSE, Divergence, Objective
from klaudit.theory.weights import ZERO, ScoreWeight


class Row(Struct, frozen=True):
    """One configuration.

    `weight` is None where it is not a function of the sampled token's d alone (full-vocabulary sums, ratios of whole sequences, unknown).
    `objective` is `descends` as data, for tokens sampled from pi itself; None where no single objective is known.
    `stale` is the same for tokens sampled from an older policy pi_old: a loss without importance weights (unless the row has its
    own ratio), a reward frozen at rollout and importance-weighted.  `variant` names a row of `VARIANTS`.
    """

    estimator: EstimatorName
    placement: Placement
    gradient: Gradient
    weight: ScoreWeight | None
    weight_text: str
    descends: str
    verdict: Verdict
    note: str = ""
    objective: Objective | None = None
    stale: Objective | None = None
    variant: str = ""

    @property
    def id(self) -> str:
        suffix = self.variant or ("" if self.gradient in ("pathwise", "score") else self.gradient)
        return f"{self.estimator}-in-{self.placement}" + (f"-{suffix}" if suffix else "")


PER_TOKEN = "exact per token; over a sequence a semi-gradient (a token gets no credit for the KL of later tokens)"
_STRAIGHT_THROUGH: tuple[EstimatorName, ...] = ("k1", "k2", "k3", "abs")
_ANY: tuple[EstimatorName, ...] = (*ESTIMATORS, "full", "unknown")
_D = ScoreWeight.of(linear=1)
_KL = Objective.of(REVERSE)
_CHI2: Divergence = "chi2(pi||ref)"


def _rows() -> Iterator[Row]:
    yield from _rewards()
    yield from _losses()
    yield from _importance_weighted()
    yield Row(
        "full", "loss", "pathwise", None, "sum over the vocabulary of pi*(log pi - log ref)", REVERSE, "unbiased-per-token",
        "least variance; " + PER_TOKEN, _KL,
    )  # fmt: skip
    yield Row(
        "full", "reward", "score", None, "the whole distribution's KL at each position", f"{REVERSE} of later tokens only", "biased",
        "a position's own KL does not depend on the token sampled there",
    )  # fmt: skip
    for name in _ANY:
        yield Row(
            name,
            "loss",
            "none",
            ZERO,
            str(ZERO),
            "nothing",
            "no-gradient",
            "computed without gradient",
            NOTHING,
            NOTHING,
        )


def _rewards() -> Iterator[Row]:
    """A rewarded value only weights the score function, so w is the value itself; later updates of the same rollout see it frozen."""

    def reward(name: EstimatorName, objective: Objective, stale: Objective, verdict: Verdict, note: str = "") -> Row:
        weight = ESTIMATORS[name].value
        return Row(name, "reward", "score", weight, str(weight), str(objective), verdict, note, objective, stale)

    yield reward(
        "k1",
        _KL,
        Objective.of(REVERSE, ("KL(pi||pi_old)", -1)),
        "unbiased",
        "exact for whole sequences, summed or as return-to-go",
    )
    yield reward(
        "k2",
        Objective.of("E_pi[k2]", (REVERSE, -1)),
        Objective.of("E_pi[frozen k2]"),
        "biased",
        "vanishes near the reference",
    )
    yield reward(
        "k3", Objective.of(REVERSE, (FORWARD, -1)), Objective.of("E_pi[frozen k3]"), "biased",
        "unbounded below: descending it can collapse the policy",
    )  # fmt: skip
    yield reward("abs", Objective.of("E_pi|d|", ("TV(pi, ref)", -2)), Objective.of("E_pi[frozen |d|]"), "biased")
    yield reward(
        "reversed-k3",
        Objective.of((_CHI2, 0.5), (REVERSE, -1)),
        Objective.of("E_pi[frozen exp(d) - d]"),
        "biased",
        "heavy tail",
    )


def _losses() -> Iterator[Row]:
    """Autograd flows through the value, so w is its slope: E_pi[k'(d) grad log pi]; under pi_old it is grad E_old[k]."""

    def loss(
        name: EstimatorName,
        objective: Objective,
        stale: Objective,
        verdict: Verdict,
        note: str = "",
        descends: str = "",
    ) -> Row:
        weight = ESTIMATORS[name].slope
        return Row(
            name, "loss", "pathwise", weight, str(weight), descends or str(objective), verdict, note, objective, stale
        )

    anti = Objective.of(("KL(pi_old||pi)", -1))
    yield loss(
        "k1", NOTHING, anti, "no-regularisation", "its expected gradient is zero on-policy and pushes away from pi_old off-policy",
        f"nothing on-policy; off-policy {anti}",
    )  # fmt: skip
    yield loss("k2", _KL, Objective.of("E_old[k2]"), "unbiased-per-token", PER_TOKEN)
    yield loss("k3", Objective.of(FORWARD), Objective.of("E_old[k3]"), "biased", "mode covering; per token")
    yield loss(
        "abs",
        Objective.of(("TV(pi, ref)", 2)),
        Objective.of("E_old|d|"),
        "biased",
        "does not vanish near the reference",
    )
    yield loss("reversed-k3", Objective.of((_CHI2, 0.5)), Objective.of("E_old[exp(d) - d]"), "biased", "heavy tail")
    for name in _STRAIGHT_THROUGH:  # the backward pass is k2's, whatever the value
        yield Row(
            name,
            "loss",
            "straight-through-k2",
            _D,
            str(_D),
            REVERSE,
            "unbiased-per-token",
            PER_TOKEN,
            _KL,
            Objective.of("E_old[k2]"),
        )


def _importance_weighted() -> Iterator[Row]:
    """rho attached: d(rho k)/dlog pi = rho (k + k'), and E_old[rho f] = E_pi[f]; so E_pi[k] is descended, stale or not."""

    def attached(name: EstimatorName, objective: Objective, verdict: Verdict, note: str = "") -> Row:
        weight = ESTIMATORS[name].value + ESTIMATORS[name].slope
        return Row(
            name,
            "loss",
            "importance-weighted",
            weight,
            str(weight),
            str(objective),
            verdict,
            note,
            objective,
            objective,
        )

    yield attached("k1", _KL, "unbiased-per-token", "off-policy too; high variance")
    yield attached("k2", Objective.of("E_pi[k2]"), "biased", "the attached ratio adds d^2/2")
    yield attached("k3", _KL, "unbiased-per-token", "off-policy too; per sample equal to a detached ratio times k2")
    yield attached("abs", Objective.of("E_pi|d|"), "biased")
    yield attached("reversed-k3", Objective.of(_CHI2, (REVERSE, -1)), "biased", "heavy tail")


TABLE: dict[tuple[EstimatorName, Placement, Gradient], Row] = {
    (row.estimator, row.placement, row.gradient): row for row in _rows()
}


def look_up(estimator: EstimatorName, placement: Placement, gradient: Gradient) -> Row:
    """The row of a configuration; a row with verdict `unknown` where the table has none."""
    if placement == "reward":
        gradient = "score"  # a rewarded value is detached: only its value counts, straight-through or not
    if row := TABLE.get((estimator, placement, gradient)):
        return row
    return Row(estimator, placement, gradient, None, "unknown", "unknown", "unknown")
