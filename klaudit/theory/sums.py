"""What several active terms do together: score weights add, so the sum is judged, not the parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from klaudit.model import EstimatorName, Verdict
from klaudit.theory.table import Row
from klaudit.theory.weights import ZERO, ScoreWeight

WeightedRow: TypeAlias = (
    "tuple[Row, float | None, Verdict]"  # row, coefficient (None: not known), that term's own verdict
)

_LINEAR: frozenset[Verdict] = frozenset({"unbiased", "unbiased-per-token", "rescaled"})
_SILENT: frozenset[Verdict] = frozenset({"no-regularisation", "no-gradient"})
_COMPLEMENTS: tuple[EstimatorName, ...] = ("k1", "k3", "full")


class Sum(Struct, frozen=True):
    """What several active terms do together."""

    weight: ScoreWeight | None
    weight_text: str
    verdict: Verdict


def judge_sum(terms: Iterable[WeightedRow]) -> Sum:
    """The summed score weight of active terms `(row, coefficient, that term's own verdict)`, and its verdict.

    A single term keeps its own verdict, unless its coefficient is negative: it then drives the policy away from the reference.
    Rewarded k1 or k3 together with the same estimator and coefficient in the loss is exactly unbiased over sequences: the reward
    gives E[k grad log pi], the loss E[grad k], and their sum is grad E[k].  The same holds for full (reward as return-to-go).
    """
    terms = list(terms)
    if not terms:
        return Sum(ZERO, "0", "inactive")
    weight = _weight(terms)
    text = (
        str(weight)
        if weight is not None
        else " + ".join(_times(coefficient, row.weight_text) for row, coefficient, _ in terms)
    )
    if len(terms) == 1:
        _, coefficient, verdict = terms[0]
        reversed_sign = coefficient is not None and coefficient < 0 and verdict in _LINEAR
        return Sum(weight, text, "biased" if reversed_sign else verdict)
    return Sum(weight, text, _of_unknown_weight(terms) if weight is None else _of_weight(weight, terms))


def _weight(terms: Sequence[WeightedRow]) -> ScoreWeight | None:
    total = ZERO
    for row, coefficient, _ in terms:
        if row.weight is None or coefficient is None:
            return None
        total = total + row.weight.scaled(coefficient)
    return total


def _of_weight(total: ScoreWeight, terms: Sequence[WeightedRow]) -> Verdict:
    verdicts = {verdict for _, _, verdict in terms}
    if worse := {verdict for row, _, verdict in terms if verdict != row.verdict} - _LINEAR - _SILENT:
        return "unknown" if "unknown" in worse else "biased"  # the caller knows of more than the weight shows
    if "rescaled" in verdicts:  # a weight that no coefficient controls: the sum is linear only if every part is
        return "rescaled" if verdicts <= _LINEAR | _SILENT else "biased"
    if total.is_zero:
        return "no-gradient"
    if total.is_constant:
        return "no-regularisation"
    if not total.is_unbiased:
        return "biased"
    speaking = verdicts - _SILENT
    if speaking <= _LINEAR:
        return "unbiased" if speaking == {"unbiased"} else "unbiased-per-token"
    return "unbiased" if _complementary(terms) else "unbiased-per-token"


def _of_unknown_weight(terms: Sequence[WeightedRow]) -> Verdict:
    """Where a coefficient or a weight is missing, only what holds for all positive coefficients is said."""
    coefficients = [coefficient for _, coefficient, _ in terms]
    if any(coefficient is not None and coefficient < 0 for coefficient in coefficients):
        return "unknown"
    if _complementary(terms) and None not in coefficients and len(set(coefficients)) == 1:
        return "unbiased"
    verdicts = {verdict for _, _, verdict in terms}
    speaking = verdicts - _SILENT
    if not speaking:
        return "no-regularisation" if "no-regularisation" in verdicts else "no-gradient"
    if speaking <= _LINEAR:
        return (
            "rescaled" if "rescaled" in speaking else "unbiased" if speaking == {"unbiased"} else "unbiased-per-token"
        )
    same_row = len({row.id for row, _, _ in terms}) == 1
    return verdicts.pop() if same_row and len(verdicts) == 1 else "unknown"


def _complementary(terms: Sequence[WeightedRow]) -> bool:
    """One estimator, rewarded and back-propagated as it is."""
    parts = {(row.placement, row.estimator, row.gradient) for row, _, _ in terms}
    return any({("reward", name, "score"), ("loss", name, "pathwise")} == parts for name in _COMPLEMENTS)


def _times(coefficient: float | None, weight: str) -> str:
    body = f"({weight})" if " " in weight else weight
    return f"beta*{body}" if coefficient is None else weight if coefficient == 1 else f"{coefficient:.6g}*{body}"
