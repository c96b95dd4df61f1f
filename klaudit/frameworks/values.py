"""Values of settings as the programs that read them take them: numbers, switches, words of a vocabulary."""

from __future__ import annotations

import math

from klaudit.frameworks.rules import SettingSpec
from klaudit.model import Unknown, Value

_TRUE, _FALSE = frozenset({"true", "yes", "on", "1", "y", "t"}), frozenset({"false", "no", "off", "0", "n", "f"})


def as_number(value: Value) -> float | None:
    """The value as a finite number; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_typed(value: Value, spec: SettingSpec, typed: bool) -> Value:
    if spec.type in ("bool", "switch") or (
        typed and isinstance(value, str) and spec.type == "any" and _is_switch(spec)
    ):
        if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        return value
    if spec.type in ("float", "int") and isinstance(value, str):
        number = as_number(value)
        return value if number is None else int(number) if spec.type == "int" and number.is_integer() else number
    return value


def _is_switch(spec: SettingSpec) -> bool:
    return any(isinstance(default.value, bool) for default in spec.defaults)


def is_on(value: Value) -> bool:
    return not isinstance(value, Unknown) and (
        bool(value) if not isinstance(value, str) else value.lower() not in _FALSE
    )


def is_same_word(word: Value, value: Value, ignore_case: bool) -> bool:
    if isinstance(word, bool) or isinstance(value, bool):
        return word is value
    if ignore_case and isinstance(word, str) and isinstance(value, str):
        return word.lower() == value.lower()
    return word == value or str(word) == str(value)
