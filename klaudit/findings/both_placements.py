"""KLA201: KL in the reward and in the loss: judged on the summed weight."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import active, describe, evidence, key, loss_place, sum_is_unbiased


@judges("both-placements")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    losses, rewards = active(resolution.terms, "loss"), active(resolution.terms, "reward")
    if not losses or not rewards:
        return
    fine = sum_is_unbiased(resolution)
    parts = "; ".join(f"{describe(state)} adds {state.term.score_weight}" for state in (*rewards, *losses))
    yield Draft(
        loss_place(resolution, losses[0]),
        f"KL both in the reward and in the loss: {parts}; together w(d) = {resolution.setup.score_weight}"
        + (": the gradient of KL(pi||ref)" if fine else ": not that of KL(pi||ref)"),
        related=tuple(item for state in (*rewards, *losses) for item in evidence(state)),
        severity="note" if fine else None,
        key=key(resolution),
    )
