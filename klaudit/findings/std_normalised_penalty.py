"""KLA108: k1 in the reward, inside group-std normalisation."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import active, describe, estimator_place, evidence, key, show
from klaudit.frameworks.rules import GroupStd
from klaudit.model import Fix


@judges("std-normalised-penalty")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for state in active(resolution.terms, "reward"):
        if state.term.verdict != "rescaled" or not isinstance(state.group_std, GroupStd):
            continue
        switch = resolution[state.group_std.switch] if state.group_std.switch else None
        can_switch = switch is not None and not (switch.default is not None and switch.default.fixed)
        title = f"set {switch.name}={show(state.group_std.switched_off)}" if switch is not None and can_switch else ""
        yield Draft(
            estimator_place(resolution, state),
            f"{describe(state)}: {state.group_std.why}: where the task reward of a group is constant the advantage is the z-score of the"
            " penalty alone, and the coefficient has no effect"
            + ("" if can_switch else "; this version cannot switch the normalisation off"),
            related=(*evidence(state), *((switch.evidence(),) if switch is not None else ())),
            fix=Fix("safe" if can_switch else "none", title),
            key=key(resolution, state.rule.id),
        )
