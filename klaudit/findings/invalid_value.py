"""KLA203: an estimator word that this version does not know or that raises there; a value out of its range."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import estimator_place, fault_drafts, key, show
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.rules import SettingSpec
from klaudit.model import Fix, Unknown


@judges("invalid-value")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    title = f"{resolution.launch.framework.title} {resolution.version}"
    for state in resolution.terms:
        if state.on is False or state.estimator is None or not state.raises or not state.estimator.setting:
            continue
        known = _words(resolution, state.estimator.id)
        yield Draft(
            estimator_place(resolution, state),
            f"{state.estimator.name}={show(state.estimator.value)} raises {state.raises} in {title}"
            + (f" ({state.why})" if state.why else ""),
            related=(state.estimator.evidence(),),
            fix=Fix("none", f"one of {', '.join(known)}" if known else ""),
            key=key(resolution, state.estimator.name),
        )
    for spec in resolution.launch.trainer.settings.values():
        effective = resolution[spec.id]
        if effective.setting is None or not spec.choices or isinstance(effective.value, Unknown):
            continue
        if effective.value not in spec.choices and effective.setting.span.path == subject.path:
            yield Draft(
                effective.setting.span,
                f"{effective.name}={show(effective.value)} is none of {', '.join(map(show, spec.choices))}"
                + _meant(effective.value, spec),
                key=key(resolution, effective.name),
            )
    yield from fault_drafts(resolution, "KLA203")


def _words(resolution: Resolution, id: str) -> list[str]:
    vocabulary = resolution.launch.trainer.vocabularies[resolution.launch.trainer.settings[id].vocabulary or ""]
    return [show(word.value) for word in vocabulary.words if resolution.version in word.versions and not word.raises]


def _meant(value: object, spec: SettingSpec) -> str:
    close = difflib.get_close_matches(str(value), [str(choice) for choice in spec.choices], n=1)
    return f" (did you mean {close[0]}?)" if close else ""
