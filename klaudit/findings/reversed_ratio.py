"""KLA302, from settings: the code in the tree calls k3 with its arguments swapped."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import (
    code_sentence,
    describe,
    estimator_place,
    evidence,
    gradient_sentence,
    key,
    proposal,
)


@judges("reversed-ratio")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for state in resolution.terms:
        if state.term.active and state.consumed is not None and state.consumed.estimator == "reversed-k3":
            yield Draft(
                estimator_place(resolution, state),
                f"{describe(state)}: in the tree's own code it {code_sentence(state)}; {gradient_sentence(state)}",
                related=evidence(state),
                fix=proposal(resolution),
                key=key(resolution, state.rule.id),
            )
