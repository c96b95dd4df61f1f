"""KLA202: a setting that nothing reads in this set-up."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import by_hand, fault_drafts, key, quote, show
from klaudit.frameworks.resolution import Effective, TermState


@judges("dead-setting")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    is_listing = resolution.launch.kind == "config"  # such a file lists all keys: off and unused is no surprise there
    alive = {each.id for state in resolution.terms if state.on is not False for each in _parts(state)}
    told: set[str] = set()
    for state in resolution.terms:
        if state.on is not False or (is_listing and any(by_hand(resolution, switch) for switch in state.switches)):
            continue
        for each in (state.estimator, state.coefficient):
            if each is None or each.id in alive or each.id in told:
                continue
            setting = by_hand(resolution, each)
            if setting is None or setting.value in (0, 0.0, None, "") or each.is_default:
                continue
            told.add(each.id)
            off = ", ".join(quote(switch) for switch in state.switches) or "this version has no such term"
            yield Draft(
                setting.span,
                f"{each.name}={show(each.value)} has no effect: KL in the {state.term.placement} is off ({off})",
                related=tuple(switch.evidence() for switch in state.switches),
                key=key(resolution, each.name),
            )
    yield from fault_drafts(resolution, "KLA202")
    for id in resolution.launch.trainer.settings:
        effective = resolution[id]
        if (
            effective.unread is not None
            and effective.unread.span.path == subject.path
            and effective.unread.origin != "default"
        ):
            why = effective.default.why if effective.default else ""
            yield Draft(
                effective.unread.span,
                f"{effective.unread.name} is not read by {resolution.launch.framework.title} {resolution.version}"
                + (f": {why}" if why else ""),
                severity="warning",
                key=key(resolution, effective.unread.name),
            )


def _parts(state: TermState) -> Iterator[Effective]:
    for each in (*state.switches, state.estimator, state.coefficient):
        if each is not None:
            yield each
