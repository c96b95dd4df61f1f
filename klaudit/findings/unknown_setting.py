"""KLA204: a setting that this version does not have: misspelt, renamed, removed, or one that never existed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import fault_drafts, key
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.rules import Name
from klaudit.model import Fix, Setting

_ABOUT_KL = re.compile(r"(^|[._\-])kl([._\-]|$)|(^|[._\-])kl_|_kl([._\-]|$)", re.IGNORECASE)


@judges("unknown-setting")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    configuration = resolution.launch.configuration
    names = _names(resolution)
    now = [name for name, (_, each) in names.items() if resolution.version in each.versions]
    title = f"{resolution.launch.framework.title} {resolution.version}"
    for given in dict.fromkeys(configuration.explicit_names()):
        if given in names:
            id, name = names[given]
            if resolution.version not in name.versions:
                for setting in _here(subject, configuration.given(given)):
                    yield _gone(resolution, setting, id, name, title)
        elif _is_about_kl(given) and not _is_known(given, resolution):
            close = difflib.get_close_matches(given, now, n=1, cutoff=0.8)
            for setting in _here(subject, configuration.given(given)) if close else ():
                yield Draft(
                    setting.span,
                    f"{title} has no setting {setting.name}: did you mean {close[0]}?",
                    confidence="medium",
                    fix=Fix("none", f"{setting.name} -> {close[0]}"),
                    key=key(resolution, setting.name),
                )
    yield from fault_drafts(resolution, "KLA204")
    for refused, why in configuration.refusals:
        if not refused or refused in names:
            here = [setting.span for setting in _here(subject, configuration.given(refused) if refused else ())]
            yield Draft(
                here[-1] if here else resolution.launch.head,
                f"the launch stops before training: {why}",
                severity="error",
                key=key(resolution, "refused", refused),
            )


@lru_cache(maxsize=4096)
def _is_about_kl(name: str) -> bool:
    return _ABOUT_KL.search(name) is not None


def _names(resolution: Resolution) -> dict[str, tuple[str, Name]]:
    """Setting id and spelling, by spelling; of equal spellings the one that this version has, else the last one."""
    found: dict[str, tuple[str, Name]] = {}
    for id, spec in resolution.launch.trainer.settings.items():
        for name in spec.names:
            if name.name not in found or resolution.version not in found[name.name][1].versions:
                found[name.name] = (id, name)
    return found


def _is_known(name: str, resolution: Resolution) -> bool:
    """A look-alike, or a directive of the configuration system such as `_target_`."""
    return name in resolution.launch.trainer.lookalikes or name.rpartition(".")[2].startswith("_")


def _here(subject: Subject, settings: Iterable[Setting]) -> list[Setting]:
    return [setting for setting in settings if setting.span.path == subject.path]


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
