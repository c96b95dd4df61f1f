"""KLA106: exact per token, a semi-gradient over the sequence."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import NO_FIX, Draft, Subject, judges
from klaudit.findings.wording import active, describe, evidence, key, loss_place, proposal, sum_is_unbiased


@judges("token-level-only")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if sum_is_unbiased(resolution) and resolution.setup.verdict == "unbiased":
        return
    better = proposal(resolution)
    for state in active(resolution.terms, "loss"):
        if state.term.verdict == "unbiased-per-token":
            yield Draft(
                loss_place(resolution, state),
                f"{describe(state)}: descends {state.row.descends} per token; a token gets no credit for the KL of later tokens",
                related=evidence(state),
                fix=better if better.safety != "none" else NO_FIX,
                key=key(resolution, state.rule.id),
            )
