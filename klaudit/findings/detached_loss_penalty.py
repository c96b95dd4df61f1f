"""KLA303, from settings: this version, or the code in the tree, computes the loss penalty without gradient."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import active, code_sentence, describe, evidence, key, loss_place, proposal


@judges("detached-loss-penalty")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for state in active(resolution.terms, "loss"):
        if state.term.verdict != "no-gradient":
            continue
        case, _, _ = resolution.first(state.rule.gradient)
        why = f" ({case.why})" if case is not None and case.why else ""
        where = f"{resolution.launch.framework.title} {resolution.version}{why}"
        if state.consumed is not None and state.consumed.gradient == "none":
            where = f"the tree's own code, where it {code_sentence(state)}"
        yield Draft(
            loss_place(resolution, state),
            f"{describe(state)}: computed without gradient in {where}:"
            " it changes the loss's value and nothing else; there is no KL regularisation from it",
            related=evidence(state),
            fix=proposal(resolution),
            key=key(resolution, state.rule.id),
        )
