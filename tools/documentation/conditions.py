"""Conditions and values of framework files in words."""

from __future__ import annotations

from collections.abc import Mapping

from documentation.markdown import code
from klaudit.frameworks.rules import Condition, Plain, Trainer
from klaudit.frameworks.versions import VersionRange

_STATES = {
    "truthy": "is true",
    "falsy": "is false, empty or 0",
    "set": "is given",
    "unset": "is not given",
    "unknowable": "decides (in code)",
}
_SIGNS = {
    "in": "is one of",
    "not-in": "is none of",
    "equals": "is",
    "above": "is above",
    "below": "is below",
    "matches": "matches",
}
_OF_THE_LAUNCH = {"$entry-point": "what is started", "$imports": "what is imported", "$config": "the primary config"}


def when(condition: Condition | None, versions: VersionRange, trainer: Trainer) -> str:
    """Under which condition and in which versions a fact holds; empty where it always does."""
    parts = [words(condition, trainer) if condition else "", code(versions.text) if versions.text else ""]
    return ", ".join(filter(None, parts))


def words(condition: Condition, trainer: Trainer) -> str:
    return " and ".join(_item(name, wanted, trainer) for name, wanted in condition.items())


def name_of(setting: str, trainer: Trainer) -> str:
    """A setting by its id, as it is written: by its newest spelling."""
    if setting in _OF_THE_LAUNCH:
        return _OF_THE_LAUNCH[setting]
    names = trainer.settings[setting].names if setting in trainer.settings else ()
    return code(names[0].name if names else setting)


def value(plain: Plain) -> str:
    """A value as YAML would have it."""
    if isinstance(plain, Mapping) and set(plain) == {"setting"}:
        return code(plain["setting"])
    if isinstance(plain, list):
        return ", ".join(map(value, plain))
    shown = {None: "null", True: "true", False: "false"}.get(plain) if isinstance(plain, bool | None) else None
    return code(shown if shown is not None else "''" if plain == "" else plain)


def _item(name: str, wanted: Plain, trainer: Trainer) -> str:
    if name in ("any", "all") and isinstance(wanted, list):
        between = " or " if name == "any" else " and "
        return "(" + between.join(words(part, trainer) for part in wanted if isinstance(part, Mapping)) + ")"
    if name == "not" and isinstance(wanted, Mapping):
        return f"not ({words(wanted, trainer)})"
    subject = name_of(name, trainer)
    if isinstance(wanted, str) and wanted in _STATES:
        return f"{subject} {_STATES[wanted]}"
    if isinstance(wanted, Mapping):
        return " and ".join(f"{subject} {_SIGNS[sign]} {_comparand(right, trainer)}" for sign, right in wanted.items())
    return f"{subject} is {value(wanted)}"


def _comparand(right: Plain, trainer: Trainer) -> str:
    if isinstance(right, Mapping) and set(right) == {"setting"}:
        return name_of(str(right["setting"]), trainer)
    return value(right)
