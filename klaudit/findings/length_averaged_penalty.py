"""KLA109: a rewarded penalty averaged over the length, or without return-to-go."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import active, describe, estimator_place, evidence, key


@judges("length-averaged-penalty")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for state in active(resolution.terms, "reward"):
        if state.length_averaged is not None:
            yield Draft(
                estimator_place(resolution, state),
                f"{describe(state)}: {state.length_averaged.why}: its gradient differs in direction from that of KL(pi||ref)",
                related=evidence(state),
                key=key(resolution, state.rule.id),
            )
