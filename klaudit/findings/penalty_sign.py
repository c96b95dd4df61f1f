"""KLA301, from settings: a negative coefficient, or code in the tree that turns the sign, rewards distance from the reference."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import code_sentence, describe, evidence, key, place, proposal
from klaudit.frameworks.resolution import Resolution, TermState
from klaudit.model import Fix


@judges("penalty-sign")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for state in resolution.terms:
        if state.term.active is False or state.term.coefficient is None or state.term.coefficient >= 0:
            continue
        if state.consumed is not None and state.consumed.sign < 0:
            if state.term.verdict != "no-regularisation":  # k1 in the loss does nothing with either sign
                yield _turned_by_code(resolution, state)
            continue
        yield Draft(
            place(resolution, (state.coefficient, *state.switches)),
            f"{describe(state)}: {_why(resolution, state)}a negative coefficient drives the policy away from the reference; deliberate"
            " only where the reference is a teacher and the sign is turned elsewhere",
            confidence="medium" if state.on else "low",
            related=evidence(state),
            fix=Fix("none", "check the sign: it cannot be told from here whether it is meant"),
            severity="warning",
            key=key(resolution, state.rule.id),
        )


def _turned_by_code(resolution: Resolution, state: TermState) -> Draft:
    return Draft(
        place(resolution, (*state.switches, state.estimator, state.coefficient)),
        f"{describe(state)}: in the tree's own code it {code_sentence(state)}, which drives the policy away from the reference",
        related=evidence(state),
        fix=proposal(resolution),
        key=key(resolution, state.rule.id),
    )


def _why(resolution: Resolution, state: TermState) -> str:
    """What the rules say of a sign that the framework turns itself."""
    case, _, _ = resolution.first(state.rule.coefficient)
    return f"{case.why}: " if case is not None and case.why else ""
