"""KLA105: biased forms in the loss other than plain k3."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import (
    active,
    describe,
    evidence,
    gradient_sentence,
    key,
    loss_place,
    proposal,
    sum_is_unbiased,
)


@judges("biased-loss-estimator")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if sum_is_unbiased(resolution):
        return
    for state in active(resolution.terms, "loss"):
        if state.term.verdict == "biased" and (state.term.estimator, state.term.gradient) != ("k3", "pathwise"):
            yield Draft(
                loss_place(resolution, state),
                f"{describe(state)}: {gradient_sentence(state)}",
                related=evidence(state),
                fix=proposal(resolution),
                key=key(resolution, state.rule.id),
            )
