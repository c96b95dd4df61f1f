"""KLA207: an unset variable reaches the command line."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import by_hand, given, key


@judges("empty-override")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    for effective in given(resolution):
        setting = effective.setting
        if (
            setting is None
            or setting.origin != "variable"
            or setting.source is not None
            or setting.value not in ("", None)
        ):
            continue  # only a variable that nothing sets has no place of its own
        if by_hand(resolution, effective) is None:
            continue
        yield Draft(
            setting.span,
            f"a variable that is never set makes {effective.name} empty, which counts as off or raises",
            related=(effective.evidence(),),
            key=key(resolution, effective.name),
        )
