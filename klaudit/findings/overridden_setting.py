"""KLA208: given twice on one command; the last one wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import given, key, show
from klaudit.model import Evidence, Setting, Unknown

_BY_HAND = ("override", "variable", "code")


@judges("overridden-setting")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    configuration = resolution.launch.configuration
    times = Counter(configuration.explicit_names())
    for effective in given(resolution):
        if times[effective.name] < 2:
            continue
        settings = [each for each in configuration.given(effective.name) if each.origin in _BY_HAND]
        if len(settings) < 2:
            continue
        *lost, winner = settings
        if winner.origin == "code" and isinstance(winner.value, Unknown):
            continue  # an assignment on one branch leaves the others what they had
        same = all(each.value == winner.value for each in lost)
        for each in lost:
            yield Draft(
                each.span,
                f"{effective.name}={show(each.value)} is given again on line {winner.span.line} as {show(winner.value)}; the last one wins",
                related=(_where(winner),),
                severity="note" if same else None,
                key=key(resolution, effective.name, show(each.value)),
            )


def _where(setting: Setting) -> Evidence:
    span = setting.source or setting.value_span
    return Evidence(setting.name, setting.value, setting.origin, span.path, span.line, span, "this one counts")
