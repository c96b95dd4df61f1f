"""Conditions of framework facts, in three-valued logic: true, false, or unknown because a setting's value is.

A condition is a mapping of which all items must hold:

    {use_kl_loss: truthy}                      truthy | falsy | set | unset | unknowable (whatever it is: code decides)
    {adv_estimator: {in: [grpo, rloo]}}        in | not-in | equals | above | below | matches
    {coef: {above: {setting: other}}}          a comparand may be another setting
    {any: [{..}, {..}]}  {all: [..]}  {not: {..}}

Names are setting ids; `$entry-point`, `$imports` and `$config` speak of the launch itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct, field

from klaudit.frameworks.records import Keys, did_you_mean
from klaudit.frameworks.rules import Condition, Plain
from klaudit.model import Unknown, Value

Known = bool | None  # None: unknown

_STATES = ("truthy", "falsy", "set", "unset", "unknowable")
_SIGNS = ("in", "not-in", "equals", "above", "below", "matches")
_OF_THE_LAUNCH = ("$entry-point", "$imports", "$config")


class Lookup(Struct):
    """How a condition asks for values, and which settings it asked for (they are the evidence of what it decides)."""

    value: Callable[[str], Value]
    is_set: Callable[[str], bool]
    asked: dict[str, None] = field(default_factory=dict)

    def __call__(self, name: str) -> Value:
        self.asked[name] = None
        return self.value(name)


def holds(condition: Condition | None, lookup: Lookup) -> Known:
    """Whether the condition holds; None where that hangs on an unknown value."""
    if condition is None:
        return True
    return _all(_item(name, wanted, lookup) for name, wanted in condition.items())


def _item(name: str, wanted: Plain, lookup: Lookup) -> Known:
    if name == "any" and isinstance(wanted, list):
        return _negate(_all(_negate(holds(part, lookup)) for part in wanted if isinstance(part, dict)))
    if name == "all" and isinstance(wanted, list):
        return _all(holds(part, lookup) for part in wanted if isinstance(part, dict))
    if name == "not" and isinstance(wanted, dict):
        return _negate(holds(wanted, lookup))
    if wanted in ("set", "unset"):
        lookup.asked[name] = None
        return lookup.is_set(name) == (wanted == "set")
    value = lookup(name)
    if isinstance(value, Unknown) or wanted == "unknowable":
        return None
    if wanted == "truthy":
        return bool(value)
    if wanted == "falsy":
        return not value
    if isinstance(wanted, dict):
        return _all(_compare(sign, value, _comparand(right, lookup)) for sign, right in wanted.items())
    return _same(value, _comparand(wanted, lookup))


def _comparand(right: Plain, lookup: Lookup) -> Value:
    if isinstance(right, dict) and set(right) == {"setting"}:
        return lookup(str(right["setting"]))
    return right


def _compare(sign: str, left: Value, right: Value) -> Known:
    if isinstance(right, Unknown):
        return None
    match sign:
        case "in":
            return any(_same(part, each) for part in _parts(left) for each in _parts(right))
        case "not-in":
            return not any(_same(part, each) for part in _parts(left) for each in _parts(right))
        case "equals":
            return _same(left, right)
        case "above" | "below":
            a, b = _number(left), _number(right)
            return None if a is None or b is None else a > b if sign == "above" else a < b
        case "matches":
            return isinstance(left, str) and re.search(str(right), left) is not None
    raise ValueError(f"unknown comparison {sign!r}")


def _parts(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def _number(value: Value) -> float | None:
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    try:
        return float(value)
    except ValueError:
        return None


def _negate(known: Known) -> Known:
    return None if known is None else not known


def _all(parts: Iterable[Known]) -> Known:
    result: Known = True
    for part in parts:
        if part is False:
            return False
        if part is None:
            result = None
    return result


# --- conditions as they are written ---------------------------------------------------------------------------------------------------


def misfits(condition: Plain, settings: Collection[str], keys: Keys = ()) -> Iterator[tuple[Keys, str]]:
    """What is wrong with a condition as a file writes it: where, and why."""
    if not isinstance(condition, dict):
        yield keys, "must be a mapping"
        return
    for name, wanted in condition.items():
        at = (*keys, name)
        if name in ("any", "all"):
            if not isinstance(wanted, list):
                yield at, "must be a list"
                continue
            for number, part in enumerate(wanted):
                yield from misfits(part, settings, (*at, number))
        elif name == "not":
            yield from misfits(wanted, settings, at)
        elif name not in settings and name not in _OF_THE_LAUNCH:
            yield at, f"no setting {name!r}{did_you_mean(name, (*settings, *_OF_THE_LAUNCH))}"
        elif isinstance(wanted, dict):
            yield from _odd_comparisons(wanted, settings, at)
        elif isinstance(wanted, str) and wanted not in _STATES and (meant := did_you_mean(wanted, _STATES, cutoff=0.8)):
            yield at, f"{wanted!r} is no state of a setting{meant}"


def _odd_comparisons(wanted: dict[str, Plain], settings: Collection[str], keys: Keys) -> Iterator[tuple[Keys, str]]:
    for sign, right in wanted.items():
        at = (*keys, sign)
        if sign not in _SIGNS:
            yield at, f"no comparison {sign!r}{did_you_mean(str(sign), _SIGNS)}; there are {', '.join(_SIGNS)}"
        elif isinstance(right, dict):
            other = right.get("setting")
            if set(right) != {"setting"} or other not in settings:
                yield at, f"no setting {other!r}{did_you_mean(str(other), settings)}"
        elif sign == "matches":
            try:
                re.compile(str(right))
            except re.error as error:
                yield at, f"{right!r} is not a pattern: {error}"
