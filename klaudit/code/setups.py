"""What the functions of a file train with, as far as the code alone says: set-ups of the kind `code`."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import CodeResult, Formula
from klaudit.code.rows import row_of
from klaudit.code.screen import is_test
from klaudit.code.wording import estimator, evidence, shown
from klaudit.model import FrameworkVersion, Gradient, Setup, Term, Verdict
from klaudit.theory import judge_sum


def setups(result: CodeResult) -> tuple[Setup, ...]:
    """One set-up a function that puts a penalty into a loss or a reward, or reports one; none for a test."""
    return tuple(setup_of(symbol, group) for symbol, group in by_symbol(result).items())


def by_symbol(result: CodeResult) -> dict[str, list[Formula]]:
    """The formulas that are told of, by the function that they are a set-up of; none for a test."""
    groups: dict[str, list[Formula]] = {}
    for formula in () if is_test(result.path) else result.formulas:
        if formula.placement != "unknown" and not formula.judged_elsewhere:
            groups.setdefault(formula.symbol, []).append(formula)
    return groups


def setup_of(symbol: str, group: list[Formula]) -> Setup:
    first = group[0]
    terms = tuple(_term(formula, is_chosen=not _is_passed_over(formula, group)) for formula in group)
    in_force = [(formula, term) for formula, term in zip(group, terms, strict=True) if term.active is not False]
    weight, verdict = _sum(in_force)
    return Setup(
        path=first.span.path,
        span=first.span,
        kind="code",
        framework="custom",
        version=FrameworkVersion("", "assumed"),
        entry_point=first.span.path,
        algorithm="",
        symbol=symbol,
        assumes=(),
        score_weight=weight,
        verdict=verdict,
        terms=terms,
    )


def _sum(in_force: list[tuple[Formula, Term]]) -> tuple[str, Verdict]:
    """What the terms do together; where settings choose between them they are no sum, and the weight hangs on the choice."""
    deciding = dict.fromkeys(name for formula, _ in in_force if _is_open(formula) for name in _choosers(formula))
    verdicts = {term.verdict for _, term in in_force}
    if deciding:
        return _hanging(deciding), verdicts.pop() if len(verdicts) == 1 else "unknown"
    if "unknown" in verdicts:
        return "unknown", "unknown"
    total = judge_sum((row_of(formula, formula.what), term.coefficient, term.verdict) for formula, term in in_force)
    return total.weight_text, total.verdict


def _hanging(names: Iterable[str]) -> str:
    told = ", ".join(map(shown, names))
    return f"hangs on {told}" if told else "unknown"


def _is_open(formula: Formula) -> bool:
    """A setting whose value is not known chooses what the formula is, or whether it is this one or another."""
    if any(variant.is_default for variant in formula.variants):
        return False
    return len(formula.variants) > 1 or bool(formula.chosen_by)


def _is_passed_over(formula: Formula, group: list[Formula]) -> bool:
    """The defaults of the settings that choose lead to another formula of the function."""
    if not formula.chosen_by or any(variant.is_default for variant in formula.variants):
        return False
    return any(
        other.placement == formula.placement
        and not set(other.chosen_by).isdisjoint(formula.chosen_by)
        and any(variant.is_default for variant in other.variants)
        for other in group
    )


def _choosers(formula: Formula) -> tuple[str, ...]:
    return formula.chosen_by or formula.settings


def _term(formula: Formula, *, is_chosen: bool) -> Term:
    """One formula as a term; where a setting that is not known chooses the estimator, its estimator and verdict are unknown."""
    what, decided = formula.what, len(formula.in_force) == 1 and not formula.through_unknown
    row, coefficient = row_of(formula, what), formula.coefficient(what)
    if formula.placement == "metric":
        return Term(
            placement="metric",
            estimator=what.estimator if decided else "unknown",
            gradient="none",
            coefficient=None,
            active=False,
            score_weight="0",
            verdict="inactive",
            evidence=evidence(formula),
            why_inactive="only reported",
        )
    if not is_chosen:
        return Term(
            placement="reward" if formula.placement == "reward" else "loss",
            estimator=what.estimator if decided else "unknown",
            gradient=_gradient(formula, what),
            coefficient=None,
            active=False,
            score_weight=row.weight_text,
            verdict="inactive",
            evidence=evidence(formula),
            why_inactive=f"not chosen by default ({', '.join(map(shown, formula.chosen_by))})",
        )
    verdict: Verdict = row.verdict if decided else "unknown"
    if verdict in ("unbiased", "unbiased-per-token", "rescaled") and formula.has_wrong_sign(what):
        verdict = "biased"  # what it descends, it should ascend
    return Term(
        placement="reward" if formula.placement == "reward" else "loss",
        estimator=what.estimator if decided else "unknown",
        gradient=_gradient(formula, what),
        coefficient=None if coefficient is None else _signed(formula, what, abs(coefficient)),
        active=False if coefficient == 0 else None if _may_be_off(formula) or not decided else True,
        score_weight=row.weight_text if decided else _hanging(_choosers(formula)),
        verdict=verdict,
        evidence=evidence(formula),
        normalised_by_group_std=True if formula.group_std == "" else None,
        facts=_facts(formula),
    )


def _may_be_off(formula: Formula) -> bool:
    """It hangs on a condition, or is multiplied by something that may be 0: of which nothing is known, or no number."""
    return bool(formula.condition) or any(
        not knob.inverse and (knob.is_guess or knob.number is None) for knob in formula.knobs
    )


def _facts(formula: Formula) -> tuple[str, ...]:
    if formula.external:
        return (f"computed by {shown(formula.external)}(), whose code is not in the tree",)
    if formula.through_unknown:
        return (f"passes through {shown(formula.through_unknown)}(), whose code is not in the tree",)
    if any(variant.what.truncated for variant in formula.variants):
        return ("a sum over the top-k entries of the vocabulary: biased by the tail that is left out",)
    if formula.what.per_entry:
        return ("a mean over the vocabulary too: the coefficient is divided by its size",)
    if formula.what.why_unknown:
        return (formula.what.why_unknown,)
    if formula.placement == "reward" and formula.averaged == "all" and formula.what.estimator == "k1":
        return (
            "averaged over all that is given before it enters the reward: of a whole batch every sample gets the same number, whose"
            " gradient a baseline takes away; of one sequence it is divided by its length",
        )
    if formula.group_std:
        return (f"divided by the group's standard deviation when {shown(formula.group_std)}",)
    return tuple(
        f"{estimator(variant.what)} when {shown(variant.when)}" for variant in formula.variants if variant.when
    )


def _signed(formula: Formula, what: Classification, size: float) -> float:
    return -size if formula.has_wrong_sign(what) else size


def _gradient(formula: Formula, what: Classification) -> Gradient:
    if formula.placement == "reward" or what.gradient == "score":
        return "score"
    return "none" if formula.detached else what.gradient
