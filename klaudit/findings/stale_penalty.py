"""KLA107: a penalty frozen at rollout, or without importance weight, under several updates per rollout."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import describe, estimator_place, evidence, key

_HELD_BACK = ("unbiased", "unbiased-per-token", "rescaled")  # others have a finding of their own


@judges("stale-penalty")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if not resolution.stale:
        return
    for state in resolution.terms:
        if state.term.active and state.term.verdict in _HELD_BACK and state.term.gradient != "importance-weighted":
            how = "frozen at rollout" if state.term.placement == "reward" else "without importance weight"
            yield Draft(
                estimator_place(resolution, state),
                f"{describe(state)}: {how}, but {'; '.join(case.why for case in resolution.stale)}: exact only at the first update",
                related=evidence(state),
                key=key(resolution, state.rule.id),
            )
