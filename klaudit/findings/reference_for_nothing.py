"""KLA205: the reference model is kept and run although the coefficient is 0."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import NO_FIX, Draft, Subject, judges
from klaudit.findings.wording import change_text, evidence, key, place, quote
from klaudit.frameworks.migrate import Change, change
from klaudit.frameworks.resolution import Resolution
from klaudit.model import Fix


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
                fix=_without_penalty(resolution),
                key=key(resolution, state.rule.id),
            )


def _without_penalty(resolution: Resolution) -> Fix:
    """What leaves the reference model out; nothing is written unasked, since the coefficient may be the mistake."""
    found = change(resolution, "no-kl")
    if not isinstance(found, Change) or found.is_empty:
        return NO_FIX
    return Fix("none", f"{change_text(found, resolution)}; or give a coefficient above 0")
