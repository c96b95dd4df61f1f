"""KLA102: k3 as a reward descends KL(pi||ref) - KL(ref||pi)."""

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
    proposal,
    sum_is_unbiased,
)


@judges("k3-in-reward")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if sum_is_unbiased(resolution):
        return
    for state in active(resolution.terms, "reward"):
        if state.term.estimator == "k3":
            yield Draft(
                estimator_place(resolution, state),
                f"{describe(state)}: {gradient_sentence(state)}; unbounded below, it can collapse the policy",
                related=evidence(state),
                fix=proposal(resolution),
                key=key(resolution, state.rule.id),
            )
