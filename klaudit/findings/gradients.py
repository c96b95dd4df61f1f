"""What the judges of wrong gradients share: one draft for each term of a placement that is the judge's, unless the sum is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from klaudit.findings.judging import Draft, Subject
from klaudit.findings.wording import (
    active,
    describe,
    estimator_place,
    evidence,
    gradient_sentence,
    key,
    loss_place,
    place,
    proposal,
    sum_is_unbiased,
)
from klaudit.frameworks.resolution import Resolution, TermState
from klaudit.frameworks.rules import GradientCase
from klaudit.model import Placement, Severity, Span, Term


def wrong_terms(
    subject: Subject,
    placement: Placement,
    is_meant: Callable[[Term], bool],
    also: str = "",
    *,
    blames_estimator: bool = False,
) -> Iterator[Draft]:
    """Drafts at the choice of placement for the loss, of the estimator for the reward and where that alone is to blame."""
    resolution = subject.resolution
    if sum_is_unbiased(resolution):
        return
    for state in active(resolution.terms, placement):
        if is_meant(state.term) and not is_turned(state):
            yield Draft(
                estimator_place(resolution, state) if blames_estimator else _place(resolution, state),
                f"{describe(state)}: {gradient_sentence(state)}{also}",
                related=evidence(state),
                fix=proposal(resolution),
                severity=_severity(resolution, state),
                key=key(resolution, state.rule.id),
            )


def _severity(resolution: Resolution, state: TermState) -> Severity | None:
    """What the rules say of a form of the framework's own; None leaves it to the catalogue."""
    case, known, _ = resolution.first(state.rule.gradient)
    return case.severity if isinstance(case, GradientCase) and case.biased and known else None


def is_turned(state: TermState) -> bool:
    """The code in the tree turns the penalty or its ratio round: a mistake of its own, which says it all."""
    code = state.consumed
    if code is None or state.term.verdict == "no-regularisation":
        return False
    return code.sign < 0 or code.estimator == "reversed-k3"


def _place(resolution: Resolution, state: TermState) -> Span:
    if state.term.placement == "loss":
        return loss_place(resolution, state)
    if state.term.score_weight != state.row.weight_text:  # the rules overrule the table: not the estimator is to blame
        return place(resolution, (state.coefficient,))
    return estimator_place(resolution, state)
