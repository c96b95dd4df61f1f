"""KLA103: autograd through k1 regularises nothing."""

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


@judges("k1-in-loss")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if sum_is_unbiased(resolution):
        return
    for state in active(resolution.terms, "loss"):
        if state.term.verdict == "no-regularisation":
            yield Draft(
                loss_place(resolution, state),
                f"{describe(state)}: {gradient_sentence(state)}",
                related=evidence(state),
                fix=proposal(resolution),
                key=key(resolution, state.rule.id),
            )
