"""KLA206: settings that the framework refuses together."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import key, place, proposal
from klaudit.model import Fix


@judges("exclusive-settings")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for fault, known in resolution.faults:
        if fault.rule != "KLA206" or not known:
            continue
        _, _, asked = resolution.first((fault,))
        involved = [
            resolution[name]
            for name in ((fault.setting, *asked) if fault.setting else asked)
            if name and not name.startswith("$")
        ]
        yield Draft(
            place(resolution, involved),
            fault.why + (f": {fault.raises}" if fault.raises else ""),
            related=tuple(each.evidence() for each in involved),
            fix=Fix("none", fault.instead) if fault.instead else proposal(resolution),
            key=key(resolution, fault.setting or fault.why),
        )
