"""KLA204: a setting that this version does not have: misspelt, renamed, removed, or one that never existed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import key
from klaudit.frameworks.resolve import Resolution
from klaudit.frameworks.rules import Name
from klaudit.model import Fix, Setting

_ABOUT_KL = re.compile(r"(^|[._\-])kl([._\-]|$)|(^|[._\-])kl_|_kl([._\-]|$)", re.IGNORECASE)


@judges("unknown-setting")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    names = {name.name: (id, name) for id, spec in resolution.launch.trainer.settings.items() for name in spec.names}
    now = [name for name, (_, each) in names.items() if resolution.version in each.versions]
    title = f"{resolution.launch.framework.title} {resolution.version}"
    for setting in resolution.launch.configuration.explicit():
        if (
            setting.span.path != subject.path
            or setting.name in now
            or setting.name in resolution.launch.trainer.lookalikes
        ):
            continue
        if setting.name in names:
            id, name = names[setting.name]
            yield _gone(resolution, setting, id, name, title)
        elif setting.name.rpartition(".")[2].startswith(
            "_"
        ):  # a directive of the configuration system, such as _target_
            continue
        elif _ABOUT_KL.search(setting.name) and (
            close := difflib.get_close_matches(setting.name, now, n=1, cutoff=0.8)
        ):
            yield Draft(
                setting.span,
                f"{title} has no setting {setting.name}: did you mean {close[0]}?",
                confidence="medium",
                fix=Fix("none", f"{setting.name} -> {close[0]}"),
                key=key(resolution, setting.name),
            )
    for refused, why in resolution.launch.configuration.refusals:
        if not refused or refused in names:
            given = resolution.launch.configuration.given(refused) if refused else ()
            here = [setting.span for setting in given if setting.span.path == subject.path]
            yield Draft(
                here[-1] if here else resolution.launch.head,
                f"the launch stops before training: {why}",
                severity="error",
                key=key(resolution, "refused", refused),
            )


def _gone(resolution: Resolution, setting: Setting, id: str, name: Name, title: str) -> Draft:
    spec = resolution.launch.trainer.settings[id]
    instead = name.replaced_by or next((each.name for each in spec.names if resolution.version in each.versions), "")
    stops = resolution.launch.trainer.unknown_flags == "refused"
    return Draft(
        setting.span,
        f"{title} has no setting {setting.name} (it exists in {name.versions.text or 'no release'})"
        + (f": {name.why}" if name.why else "")
        + (f"; write {instead}" if instead else ""),
        severity="error" if stops else "warning",
        fix=Fix("none", f"{setting.name} -> {instead}" if instead else f"remove {setting.name}"),
        key=key(resolution, setting.name),
    )
