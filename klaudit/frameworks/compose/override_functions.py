"""The functions of Hydra's override grammar: casts, and sweeps over several values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from klaudit.model import Scalar, Unknown, Value

MAX_ALTERNATIVES = 1000


class Sweep(Struct, frozen=True):
    """Several values, one for each run of a multirun.  `alternatives` is None where they cannot be listed.

    `simple` marks the bare form `a,b`, which is also what a forgotten pair of quotes or brackets looks like.
    """

    alternatives: tuple[Value, ...] | None
    simple: bool = False


SweepOr: TypeAlias = Value | Sweep


def _the_value(arguments: tuple[SweepOr, ...], named: dict[str, SweepOr], name: str = "value") -> SweepOr:
    """The one argument of a cast; several are a sweep."""
    if named.keys() - {name} or (arguments and named):
        raise TypeError("unexpected arguments")
    values = (*arguments, *named.values())
    if not values:
        raise TypeError("no argument")
    return values[0] if len(values) == 1 else Sweep(_plain(values), simple=True)


def _plain(values: tuple[SweepOr, ...]) -> tuple[Value, ...]:
    plain = []
    for value in values:
        if isinstance(value, Sweep):
            raise TypeError("sweeps do not nest")
        plain.append(value)
    return tuple(plain)


def _cast(convert: Callable[[bool | int | float | str], Scalar]) -> Callable[..., SweepOr]:
    def apply(value: Value) -> Value:
        if isinstance(value, list):
            return [apply(item) for item in value]
        if isinstance(value, dict):
            return {key: apply(item) for key, item in value.items()}
        if value is None or isinstance(value, Unknown):
            raise TypeError("null cannot be cast")
        return convert(value)

    def cast(*arguments: SweepOr, **named: SweepOr) -> SweepOr:
        value = _the_value(arguments, named)
        if not isinstance(value, Sweep):
            return apply(value)
        if value.alternatives is None:
            return value
        return Sweep(tuple(apply(item) for item in value.alternatives), value.simple)

    return cast


def _to_text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_bool(value: bool | int | float | str) -> bool:
    if not isinstance(value, str):
        return bool(value)
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{value} is neither true nor false")
    return value.lower() == "true"


def _choice(*arguments: SweepOr) -> SweepOr:
    if not arguments:
        raise ValueError("nothing to choose from")
    only = arguments[0]
    if len(arguments) == 1 and isinstance(only, Sweep):
        if not only.simple:
            raise ValueError("sweeps do not nest")
        return Sweep(only.alternatives)
    return Sweep(_plain(arguments))


def _range(start: SweepOr, stop: SweepOr = None, step: SweepOr = 1) -> SweepOr:
    if stop is None:
        start, stop = 0, start
    bounds: list[int | float] = []
    for bound in (start, stop, step):
        if not isinstance(bound, (int, float)):
            raise TypeError("a range wants numbers")
        bounds.append(bound)
    first, last, by = bounds
    if by == 0 or not all(math.isfinite(bound) for bound in bounds):
        return Sweep(None)
    count = max(0, math.ceil((last - first) / by))
    return Sweep(tuple(first + i * by for i in range(count))) if count <= MAX_ALTERNATIVES else Sweep(None)


def _interval(start: SweepOr, end: SweepOr) -> SweepOr:
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        raise TypeError("an interval wants numbers")
    return Sweep(None)


def _glob(include: SweepOr, exclude: SweepOr = None) -> SweepOr:
    if not isinstance(include, (str, list)) or not isinstance(exclude, (str, list, type(None))):
        raise TypeError("glob wants patterns")
    return Sweep(None)


def _tag(*arguments: SweepOr, sweep: SweepOr = None) -> SweepOr:
    *tags, last = (*arguments, sweep) if sweep is not None else arguments
    if not isinstance(last, Sweep) or not all(isinstance(tag, str) for tag in tags):
        raise TypeError("tag wants texts and a sweep")
    return last


def _shuffle(*arguments: SweepOr, sweep: SweepOr = None, list: SweepOr = None) -> SweepOr:
    given = tuple(value for value in (list, sweep) if value is not None) or arguments
    if len(given) != 1:
        return Sweep(_plain(arguments), simple=True)
    value = given[0]
    if isinstance(value, Sweep):
        return value
    return Unknown(("shuffle()",)) if _is_list(value) else [value]


def _sort(*arguments: SweepOr, sweep: SweepOr = None, list: SweepOr = None, reverse: SweepOr = False) -> SweepOr:
    if not isinstance(reverse, bool):
        raise TypeError("reverse is true or false")
    given = tuple(value for value in (list, sweep) if value is not None) or arguments
    if not given:
        raise ValueError("nothing to sort")
    if len(given) > 1:
        return Sweep(tuple(_sorted(_plain(given), reverse)), simple=True)
    value = given[0]
    if isinstance(value, Sweep):
        known = value.alternatives
        return value if known is None else Sweep(tuple(_sorted(known, reverse)), value.simple)
    return _sorted(tuple(value), reverse) if isinstance(value, _LIST) else value


_LIST = list  # two functions take an argument of that name


def _is_list(value: Value) -> bool:
    return isinstance(value, _LIST)


def _sorted(values: tuple[Value, ...], reverse: bool) -> list[Value]:
    if all(isinstance(value, str) for value in values):
        return sorted(values, key=str, reverse=reverse)
    numbers = [value for value in values if isinstance(value, (int, float))]
    if len(numbers) < len(values):
        raise TypeError("these values have no order")
    return [*sorted(numbers, reverse=reverse)]


FUNCTIONS: dict[str, Callable[..., SweepOr]] = {
    "int": _cast(int),
    "float": _cast(float),
    "str": _cast(_to_text),
    "bool": _cast(_to_bool),
    "choice": _choice,
    "range": _range,
    "interval": _interval,
    "glob": _glob,
    "tag": _tag,
    "shuffle": _shuffle,
    "sort": _sort,
}
