"""What the functions of a file train with, as far as the code alone says: set-ups of the kind `code`."""

from __future__ import annotations

from klaudit.code.evaluation.classification import Classification
from klaudit.code.result import CodeResult, Formula
from klaudit.code.rows import row_of
from klaudit.code.screen import is_test
from klaudit.code.wording import estimator, evidence, shown
from klaudit.model import FrameworkVersion, Gradient, Setup, Term, Verdict
from klaudit.theory import judge_sum


def setups(result: CodeResult) -> tuple[Setup, ...]:
    """One set-up a function that puts a penalty into a loss or a reward, or reports one; none for a test."""
    if is_test(result.path):
        return ()
    by_symbol: dict[str, list[Formula]] = {}
    for formula in result.formulas:
        if formula.placement != "unknown":
            by_symbol.setdefault(formula.symbol, []).append(formula)
    return tuple(_setup(symbol, group) for symbol, group in by_symbol.items())


def _setup(symbol: str, group: list[Formula]) -> Setup:
    first = group[0]
    terms = tuple(_term(formula) for formula in group)
    active = [
        (row_of(formula, formula.what), term.coefficient, term.verdict)
        for formula, term in zip(group, terms, strict=True)
        if term.active is not False
    ]
    total = judge_sum(active)
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
        score_weight=total.weight_text,
        verdict=total.verdict,
        terms=terms,
    )


def _term(formula: Formula) -> Term:
    """One formula as a term; where a setting that is not known chooses the estimator, its estimator and verdict are unknown."""
    what, decided = formula.what, len(formula.in_force) == 1
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
    verdict: Verdict = row.verdict if decided else "unknown"
    return Term(
        placement="reward" if formula.placement == "reward" else "loss",
        estimator=what.estimator if decided else "unknown",
        gradient=_gradient(formula, what),
        coefficient=None if coefficient is None else _signed(formula, what, abs(coefficient)),
        active=False if coefficient == 0 else None if formula.condition or not decided else True,
        score_weight=row.weight_text if decided else "hangs on " + ", ".join(formula.chosen_by or formula.settings),
        verdict=verdict,
        evidence=evidence(formula),
        normalised_by_group_std=formula.normalised_by_spread or None,
        facts=_facts(formula),
    )


def _facts(formula: Formula) -> tuple[str, ...]:
    if formula.external:
        return (f"computed by {shown(formula.external)}(), whose code is not in the tree",)
    return tuple(
        f"{estimator(variant.what)} when {shown(variant.when)}" for variant in formula.variants if variant.when
    )


def _signed(formula: Formula, what: Classification, size: float) -> float:
    return -size if formula.has_wrong_sign(what) else size


def _gradient(formula: Formula, what: Classification) -> Gradient:
    if formula.placement == "reward" or what.gradient == "score":
        return "score"
    return "none" if formula.detached else what.gradient
