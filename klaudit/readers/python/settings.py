"""From evaluated pairs to settings with spans."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.model import Origin, Setting, Unknown
from klaudit.readers.python.results import MAX_ITEMS, Made, Opaque, Pair, Result, Table, value_of
from klaudit.readers.python.syntax import Module

MAX_DEPTH = 12


def settings_of(
    module: Module, pairs: Iterable[Pair], *, prefix: str = "", leaves_only: bool = False, origin: Origin = "code"
) -> tuple[Setting, ...]:
    """One setting for each pair and, for dicts and made objects, one for each key below under its dotted name.

    `leaves_only` leaves out the dicts themselves.
    """
    found: list[Setting] = []
    _collect(module, pairs, prefix, leaves_only, origin, 0, found)
    return tuple(found)


def setting(module: Module, name: str, pair: Pair, origin: Origin = "code") -> Setting:
    """The setting that one pair makes."""
    value = pair.value
    span, value_span = module.span(pair.start, pair.end), module.span(pair.value_start, pair.value_end)
    elsewhere = not pair.value_start <= value.start <= pair.value_end
    source = module.span(value.start, value.end) if elsewhere and not isinstance(value, Made) else None
    raw = module.spelling(pair.value_start, pair.value_end)
    known = value_of(value)
    if isinstance(known, Unknown) and not known.text:
        known = Unknown(known.hangs_on, raw)
    return Setting(name, known, span, value_span, origin, source, raw)


def conditional(pair: Pair, condition: tuple[str, ...], module: Module) -> Pair:
    """The pair as it is where `condition` decides whether it counts."""
    spelled = module.spelling(pair.value_start, pair.value_end)
    value = Opaque(condition, pair.value.start, pair.value.end, spelled, pair.value)
    return Pair(pair.key, value, pair.start, pair.end, pair.value_start, pair.value_end)


def _collect(
    module: Module,
    pairs: Iterable[Pair],
    prefix: str,
    leaves_only: bool,
    origin: Origin,
    depth: int,
    found: list[Setting],
) -> None:
    for pair in pairs:
        if len(found) > MAX_ITEMS:
            return
        name = prefix + pair.key
        below = _below(pair.value) if depth < MAX_DEPTH else ()
        if not below or not leaves_only:
            found.append(setting(module, name, pair, origin))
        if below:
            _collect(module, below, f"{name}.", leaves_only, origin, depth + 1, found)


def _below(value: Result) -> tuple[Pair, ...]:
    match value:
        case Table() | Made():
            return value.pairs
        case Opaque(maybe=(Table() | Made()) as maybe):
            return tuple(
                Pair(p.key, _under(value.hangs_on, p.value), p.start, p.end, p.value_start, p.value_end)
                for p in maybe.pairs
            )
        case _:
            return ()


def _under(condition: tuple[str, ...], value: Result) -> Opaque:
    known = value_of(value)
    text = known.text if isinstance(known, Unknown) else str(known)
    return Opaque(condition, value.start, value.end, text, value)
