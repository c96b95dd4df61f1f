"""KLA205: the reference model is kept and run although the coefficient is 0."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import evidence, key, place, quote


@judges("reference-for-nothing")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    if any(state.term.active is not False for state in resolution.terms):
        return
    for state in resolution.terms:
        if (
            state.on
            and state.term.coefficient == 0
            and not state.raises
            and resolution.first(state.rule.reference_at_zero)[1]
        ):
            switches = ", ".join(quote(each) for each in state.switches)
            yield Draft(
                place(resolution, (state.coefficient, *state.switches)),
                f"KL in the {state.term.placement} is switched on ({switches or 'always'}) with coefficient 0: it regularises nothing,"
                " yet the reference model is loaded and run (unless your own code reads the reference's log-probabilities)",
                related=evidence(state),
                key=key(resolution, state.rule.id),
            )
