"""KLA207: an unset variable reaches the command line."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import by_hand, key


@judges("empty-override")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for id in resolution.launch.trainer.settings:
        effective = resolution[id]
        setting = by_hand(resolution, effective)
        if setting is None or setting.value not in ("", None) or "$" not in setting.raw:
            continue
        yield Draft(
            setting.span,
            f"{setting.raw}: the variable is never set, so {effective.name} becomes empty, which counts as off or raises",
            related=(effective.evidence(),),
            key=key(resolution, effective.name),
        )
