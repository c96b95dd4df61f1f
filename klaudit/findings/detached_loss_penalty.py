"""KLA303, from settings: this version computes the loss penalty without gradient."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import active, describe, evidence, key, loss_place, proposal


@judges("detached-loss-penalty")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for state in active(resolution.terms, "loss"):
        if state.term.verdict != "no-gradient":
            continue
        case, _, _ = resolution.first(state.rule.gradient)
        why = f" ({case.why})" if case is not None and case.why else ""
        yield Draft(
            loss_place(resolution, state),
            f"{describe(state)}: computed without gradient in {resolution.launch.framework.title} {resolution.version}{why}:"
            " it changes the loss's value and nothing else; there is no KL regularisation from it",
            related=evidence(state),
            fix=proposal(resolution),
            key=key(resolution, state.rule.id),
        )
