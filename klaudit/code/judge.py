"""What the analysis of a file amounts to: findings (and set-ups) in the words of klaudit.model.

A penalty whose estimator a setting chooses is no finding while some choice is right: the launch that chooses is judged, not the library.
A wrong sign, a lost or a leaking gradient and a reversed ratio are wrong whatever is chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from klaudit.code.evaluation.classification import Classification
from klaudit.code.formatting import canonical
from klaudit.code.result import CodeResult, Formula
from klaudit.code.rows import row_of
from klaudit.code.screen import is_test
from klaudit.code.setups import setups
from klaudit.code.wording import NORMALISED, described, evidence, has_no_direction, shown, weights
from klaudit.findings import catalogue
from klaudit.model import Confidence, Finding, Fix, Severity, Span, Verdict
from klaudit.theory import FORWARD, REVERSE

__all__ = ["findings", "setups"]

_RIGHT: frozenset[Verdict] = frozenset({"unbiased", "unbiased-per-token", "rescaled"})
_BIASED_REWARDS = {"k3": "KLA102", "k2": "KLA104", "abs": "KLA104", "full": "KLA104"}
_LONGEST_CONDITION = 100


def findings(result: CodeResult) -> tuple[Finding, ...]:
    """The findings of a file, in its order; none for a test."""
    if is_test(result.path):
        return ()
    found: dict[tuple[str, int, int], Finding] = {}
    for formula in result.formulas:
        for finding in _judge(formula, result):
            found.setdefault((finding.rule, finding.span.start, finding.span.end), finding)
    return tuple(sorted(found.values(), key=lambda finding: (finding.span.start, finding.rule)))


def _judge(formula: Formula, result: CodeResult) -> Iterator[Finding]:
    if (
        formula.placement not in ("loss", "reward")
        or formula.judged_elsewhere
        or formula.external
        or formula.through_unknown  # what it is in the end, nobody sees
        or formula.coefficient(formula.what) == 0
    ):
        return
    yield from _sign_and_direction(formula)
    yield from _flow(formula)
    yield from _arguments(formula)
    yield from _length(formula)
    if formula.placement == "loss":
        if formula.detached:
            return  # KLA303 says it all
        yield from _unstable(formula)
    if _is_chosen_well(formula, result):
        return
    seen: set[str] = {""}
    for variant in formula.in_force:
        rule = _gradient_rule(formula, variant.what)
        if rule == "KLA106" and formula.has_wrong_sign(variant.what):
            continue
        if rule not in seen:
            seen.add(rule)
            told = NORMALISED if rule == "KLA108" else weights(formula, variant.what)
            message = f"{described(formula, variant)}: {told}"
            yield _finding(rule, formula, formula.span, message)


def _is_chosen_well(formula: Formula, result: CodeResult) -> bool:
    """A setting chooses the estimator, no default is known, and some choice is right."""
    if any(variant.is_default for variant in formula.variants):
        return False
    alternatives = [*formula.variants]
    for other in result.formulas:
        if other is not formula and _is_alternative(other, formula):
            alternatives += other.variants
    return len(alternatives) > 1 and any(_is_right(formula, variant.what) for variant in alternatives)


def _is_alternative(other: Formula, formula: Formula) -> bool:
    """The same setting leads to one or to the other."""
    if other.symbol != formula.symbol or other.placement != formula.placement:
        return False
    lost = other.placement == "loss" and other.detached
    return not lost and not set(other.chosen_by).isdisjoint(formula.chosen_by)


def _is_right(formula: Formula, what: Classification) -> bool:
    return row_of(formula, what).verdict in _RIGHT or (what.gradient == "score" and not what.only_where)


# --- what is wrong by what a variant descends ----------------------------------------------------------------------------------------


def _gradient_rule(formula: Formula, what: Classification) -> str:
    """The rule for what a variant descends; empty where that is right, not known, or another rule's business."""
    if formula.may_be_weighted:
        return ""
    if what.probability_weighted:
        return "KLA306" if formula.is_sampled else ""
    if what.truncated:
        return "KLA104" if formula.placement == "reward" or what.gradient == "score" else "KLA105"
    if what.direction == "ref||pi":
        return "" if formula.kl_div else "KLA105" if formula.placement == "loss" else "KLA104"
    if what.only_where and what.estimator == "k1":
        return "KLA104" if formula.placement == "reward" or what.gradient == "score" else "KLA105"
    if formula.placement == "reward" and formula.averaged == "all" and what.estimator == "k1":
        return ""  # of one sequence or of the batch, nobody sees
    if formula.placement == "reward" and formula.group_std == "" and what.estimator == "k1":
        return "KLA108"  # where a setting decides, the row says so, and the launch that sets it is judged
    if formula.placement == "reward" or what.gradient == "score":
        return _BIASED_REWARDS.get(what.estimator, "")
    row = row_of(formula, what)
    if what.estimator in ("reversed-k3", "unknown"):
        return "KLA103" if what.estimator == "unknown" and row.verdict == "no-regularisation" else ""
    if row.verdict in _RIGHT:
        return "" if what.level == "sequence" and row.verdict == "unbiased" else "KLA106"
    if what.estimator == "k1" and what.gradient == "pathwise":
        return "KLA103"
    return "KLA101" if what.estimator == "k3" and what.gradient == "pathwise" and what.ratio == "none" else "KLA105"


# --- what is wrong whatever the settings choose --------------------------------------------------------------------------------------


def _sign_and_direction(formula: Formula) -> Iterator[Finding]:
    turned_round = [variant for variant in formula.in_force if variant.what.estimator == "reversed-k3"]
    for variant in turned_round:
        where = formula.difference or formula.span
        yield _finding("KLA302", formula, where, f"{described(formula, variant)}: {weights(formula, variant.what)}")
    if turned_round:
        return  # swapped arguments turn k3 round and the sign of k1: one mistake
    wrong = [
        variant
        for variant in formula.in_force
        if formula.has_wrong_sign(variant.what) and not has_no_direction(formula, variant.what)
    ]
    if wrong:
        verb = "subtracted from" if formula.placement == "loss" else "added to"
        if formula.has_negative_knobs:
            verb = "given a negative coefficient in"
        away = {row_of(formula, variant.what).descends for variant in wrong} & {FORWARD, REVERSE}
        ascends = f", which ascends {away.pop()}" if len(away) == len(wrong) == 1 else ""
        where = formula.joined or formula.span
        message = f"{described(formula, *wrong)} is {verb} the {formula.placement}{ascends}"
        yield _finding("KLA301", formula, where, message)


def _flow(formula: Formula) -> Iterator[Finding]:
    subject = described(formula, *formula.in_force)
    if formula.placement == "loss" and formula.detached and formula.sink_is_live:
        under = f" (when {shown(formula.condition)})" if 0 < len(formula.condition) < _LONGEST_CONDITION else ""
        yield _finding("KLA303", formula, formula.span, f"{subject} reaches the loss without gradient{under}")
    if formula.attached:
        yield _finding(
            "KLA304", formula, formula.span, f"{subject} is part of a reward, but its log pi carries gradient"
        )


def _arguments(formula: Formula) -> Iterator[Finding]:
    if formula.log_of_softmax is not None:
        subject = described(formula, *formula.in_force)
        yield _finding("KLA307", formula, formula.log_of_softmax, f"a log of a probability enters {subject}")
    if formula.kl_div is not None:
        wrong = list(formula.kl_div.wrong)
        if any(variant.what.direction == "ref||pi" for variant in formula.in_force):
            wrong.append(f"in this order of the arguments it is {FORWARD}")
        if wrong:
            yield _finding("KLA308", formula, formula.kl_div.span, "kl_div: " + "; ".join(wrong))


def _length(formula: Formula) -> Iterator[Finding]:
    """A penalty that would be right, were it not averaged over each sequence's length."""
    chosen = [variant for variant in formula.in_force if variant.what.estimator == "k1" and not variant.what.only_where]
    if formula.averaged == "length" and chosen:
        message = (
            f"{described(formula, *chosen)}: averaged over the length of each sequence before it enters the reward"
        )
        yield _finding(
            "KLA109", formula, formula.span, f"{message}: its gradient differs in direction from that of {REVERSE}"
        )


def _unstable(formula: Formula) -> Iterator[Finding]:
    for variant in formula.in_force:
        limits, subject = variant.what.limits, described(formula, variant)
        if limits.sign_flips:
            message = f"{subject}: beyond a one-sided clamp the gradient changes its sign"
            yield _finding("KLA305", formula, formula.span, message, "warning")
        elif limits.unbounded_exp and limits.clamp_after_exp:
            message = f"{subject}: the clamp comes after exp, so an overflow gives a NaN gradient"
            yield _finding("KLA305", formula, formula.span, message, "warning")
        elif limits.unbounded_exp:
            yield _finding("KLA305", formula, formula.span, f"{subject}: nothing bounds the log-ratio before exp")
        else:
            continue
        return


def _finding(rule: str, formula: Formula, span: Span, message: str, severity: Severity | None = None) -> Finding:
    entry = catalogue.with_id(rule)
    if span.path != formula.span.path:
        span = formula.span  # what is written in another file is reported where this one leads there
    key = "\0".join((rule, formula.symbol, canonical(formula.text), formula.placement))
    return Finding(
        rule=rule,
        name=entry.name,
        severity=severity or entry.severity,
        confidence=_confidence(formula),
        span=span,
        message=message,
        why=entry.summary,
        fix=Fix("none", entry.advice),
        identity=hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20],
        related=evidence(formula),
    )


def _confidence(formula: Formula) -> Confidence:
    """Medium at most where a setting that is not known still decides what the formula is."""
    undecided = formula.chosen_by and not any(variant.is_default for variant in formula.variants)
    if formula.confidence == "high" and undecided:
        return "medium"
    return formula.confidence
