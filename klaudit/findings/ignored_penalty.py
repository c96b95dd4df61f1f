"""KLA209: a penalty that the trainer or the advantage estimator in use never reads."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import estimator_place, evidence, fault_drafts, key, loss_place, proposal


@judges("ignored-penalty")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    yield from fault_drafts(resolution, "KLA209")
    for state in resolution.terms:
        if state.ignored is None or state.term.verdict != "ignored" or state.term.coefficient == 0:
            continue
        where = loss_place if state.term.placement == "loss" else estimator_place
        others = any(other.term.active for other in resolution.terms)
        yield Draft(
            where(resolution, state),
            f"KL in the {state.term.placement} is configured but never read: {state.ignored.why}"
            + ("" if others else "; there is no KL at all"),
            related=evidence(state),
            fix=proposal(resolution),
            key=key(resolution, state.rule.id),
        )
