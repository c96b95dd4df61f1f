"""Proof of a rewrite: the edited file, analysed again, holds what was promised, nothing else has changed, and it still compiles."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from klaudit.code.analyse import analyse
from klaudit.code.judge import findings
from klaudit.code.result import CodeResult, Formula
from klaudit.code.rows import row_of
from klaudit.code.wording import shown
from klaudit.fixes.codemods.proposal import CannotMendError, Case, Promise
from klaudit.model import Finding
from klaudit.readers.source import Source, UnreadableError

Load = Callable[[str], Source | None]

_RIGHT = ("unbiased", "unbiased-per-token")


@dataclass(frozen=True, slots=True)
class Judged:
    """The analysis of a file and the findings of each formula."""

    result: CodeResult
    cases: tuple[Case, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(case.finding for case in self.cases)


def judged(source: Source, load: Load) -> Judged:
    """Raises UnreadableError where the file is not Python."""
    result = _analysed(source, load)
    raised = {(each.rule, each.span.start, each.span.end): each for each in findings(result)}
    by_finding: dict[tuple[str, int, int], Formula] = {}
    for formula in result.formulas:
        for each in findings(CodeResult(result.path, (formula,))):
            place = (each.rule, each.span.start, each.span.end)
            if place in raised and raised[place].message == each.message:
                by_finding.setdefault(place, formula)
    rules: dict[int, set[str]] = {}
    for (rule, _, _), formula in by_finding.items():
        rules.setdefault(id(formula), set()).add(rule)
    cases = tuple(
        Case(raised[place], formula, frozenset(rules[id(formula)] - {place[0]}))
        for place, formula in by_finding.items()
    )
    return Judged(result, cases)


def _analysed(source: Source, load: Load) -> CodeResult:
    if not source.path.endswith(".ipynb"):
        return analyse(source, load=load)
    from klaudit.readers.notebook import read_notebook

    python = read_notebook(source).python
    return analyse(python.source, load=load) if python is not None else CodeResult(source.path, ())


@dataclass(frozen=True, slots=True)
class Proven:
    """The analysis of the edited file, and the formula that took the place of the one that was mended."""

    state: Judged
    formula: Formula


def prove(before: Judged, case: Case, promise: Promise, edited: Source, load: Load) -> Proven:
    """Raises CannotMendError with the reason where the edited file is not what was promised."""
    try:
        after = judged(edited, load)
    except UnreadableError as error:
        raise CannotMendError(f"the result would not be Python: {error}") from None
    if why := _does_not_compile(edited) or _other_findings(before, after, case, promise):
        raise CannotMendError(why)
    return Proven(after, _new_formula(before, after, case, promise))


def _does_not_compile(source: Source) -> str:
    """What the compiler finds beyond the grammar.  Nothing is executed."""
    if source.path.endswith(".ipynb"):
        return ""  # cells may await and return at their top level; that they parse has been seen
    try:
        compile(source.data, source.path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"the result would not compile: {error}"
    return ""


def _other_findings(before: Judged, after: Judged, case: Case, promise: Promise) -> str:
    old, new = _counted(before.findings), _counted(after.findings)
    own = (case.finding.rule, case.formula.symbol)
    if new[own] >= old[own]:
        return f"{case.finding.rule} would still be found"
    for (rule, symbol), number in new.items():
        if number > old[rule, symbol] and rule not in promise.reveals:
            return f"{rule} would be found in {symbol or 'the top level'} instead"
    return ""


def _counted(found: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter((each.rule, each.related[0].setting if each.related else "") for each in found)


def _new_formula(before: Judged, after: Judged, case: Case, promise: Promise) -> Formula:
    """What takes the place of the formula is as promised; the other formulas of losses and rewards are what they were."""
    others = [each for each in _used(before.result) if not _is_same(each, case.formula)]
    beside = [each for each in others if each.difference is not None and each.difference == case.formula.difference]
    kept = Counter((*_signature(each), _live(each)) for each in others if each not in beside)
    related = Counter(map(_signature, beside))  # of the same log-ratio: a clamp of it holds for them too
    new: list[Formula] = []
    for each in _used(after.result):
        signature = _signature(each)
        exactly = (*signature, _live(each))
        if kept[exactly]:
            kept[exactly] -= 1
        elif related[signature]:
            related[signature] -= 1
        else:
            new.append(each)
    if +kept or +related:
        raise CannotMendError("another formula of the file would change")
    same = [each for each in new if each.placement == promise.placement]
    if not new or len(new) != len(same):
        places = " and ".join(sorted(f"{each.what.estimator} in the {each.placement}" for each in new)) or "no penalty"
        raise CannotMendError(f"the result would be {places}")
    for each in same:
        if why := _unlike(case.formula, each, promise):
            raise CannotMendError(why)
    return same[0]


def _is_same(one: Formula, other: Formula) -> bool:
    """One formula, reached from one function or another."""
    return (one.span, one.home, one.joined, one.placement) == (other.span, other.home, other.joined, other.placement)


def _used(result: CodeResult) -> list[Formula]:
    return [each for each in result.formulas if each.placement in ("loss", "reward") and not each.judged_elsewhere]


def _live(formula: Formula) -> tuple[object, ...]:
    return tuple(variant.what.limits.live for variant in formula.variants)


def _signature(formula: Formula) -> tuple[object, ...]:
    whats = tuple(
        (each.what.estimator, each.what.gradient, round(each.what.scale, 6), each.what.direction)
        for each in formula.variants
    )
    knobs = tuple((shown(knob.name), knob.inverse) for knob in formula.knobs)
    return (
        formula.symbol,
        formula.placement,
        whats,
        round(formula.factor, 9),
        knobs,
        formula.detached,
        formula.attached,
    )


def _unlike(old: Formula, new: Formula, promise: Promise) -> str:
    what = new.what
    if promise.estimator is not None and what.estimator not in (promise.estimator, "unknown" if what.direction else ""):
        return f"the result would be {what.estimator} in the {new.placement}"
    is_migrated = promise.is_unbiased
    if new.has_wrong_sign(what) and (is_migrated or not old.has_wrong_sign(old.what)):
        return "the result would have the wrong sign"
    if new.placement == "reward" and new.attached and (is_migrated or not old.attached):
        return "the result would carry a gradient"
    if new.placement == "reward" and new.normalised_by_spread and not old.normalised_by_spread:
        return "the result would be divided by the spread of the group, which cancels its coefficient"
    if new.placement == "loss" and new.detached and (is_migrated or not old.detached):
        return "the result would have no gradient"
    if is_migrated and row_of(new, what).verdict not in _RIGHT:
        return f"the result would be {row_of(new, what).verdict}"
    if promise.keeps_coefficient and (why := _other_coefficient(old, new, promise)):
        return why
    return ""


def _other_coefficient(old: Formula, new: Formula, promise: Promise) -> str:
    was, now = abs(old.factor * old.what.scale), abs(new.factor * new.what.scale)
    inside = was if promise.inside is None else abs(promise.inside * old.what.scale)
    if not (math.isclose(was, now, rel_tol=1e-6) or math.isclose(inside, now, rel_tol=1e-6)):
        return f"the coefficient would become {now / was:g} times what it is"
    before, after = (Counter((shown(knob.name), knob.inverse) for knob in each.knobs) for each in (old, new))
    if after - before or (before - after and promise.inside is None):
        return "the coefficient would be another one"
    return ""
