"""KLA104: k2, abs and their like as a reward."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import (
    active,
    describe,
    estimator_place,
    evidence,
    gradient_sentence,
    key,
    place,
    proposal,
    sum_is_unbiased,
)


@judges("biased-reward-estimator")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if sum_is_unbiased(resolution):
        return
    for state in active(resolution.terms, "reward"):
        if state.term.verdict == "biased" and state.term.estimator != "k3":
            is_overruled = (
                state.term.score_weight != state.row.weight_text
            )  # then it is not the estimator that is to blame
            yield Draft(
                place(resolution, (state.coefficient,)) if is_overruled else estimator_place(resolution, state),
                f"{describe(state)}: {gradient_sentence(state)}",
                related=evidence(state),
                fix=proposal(resolution),
                key=key(resolution, state.rule.id),
            )
