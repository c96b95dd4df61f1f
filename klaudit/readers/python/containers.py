"""Dicts merged, lists and texts joined, with what cannot be seen in them."""

from __future__ import annotations

from klaudit.readers.python import strings
from klaudit.readers.python.results import (
    MAX_ITEMS,
    REST,
    Fragment,
    Items,
    Made,
    Opaque,
    Pair,
    Result,
    Table,
    Text,
    hangs_on,
    unique,
)


def under(condition: tuple[str, ...], pair: Pair) -> Pair:
    """The pair where `condition` decides whether its value counts."""
    value = Opaque(condition, pair.value.start, pair.value.end, maybe=pair.value)
    return Pair(pair.key, value, pair.start, pair.end, pair.value_start, pair.value_end)


def uncertain(result: Result, names: tuple[str, ...]) -> Result:
    """What is left of a value after something has been done to it that we do not follow."""
    match result:
        case Table():
            return Table(
                tuple(under(names, p) for p in result.pairs), result.start, result.end, unique((*result.open, *names))
            )
        case Made():
            pairs = tuple(under(names, p) for p in result.pairs)
            return Made(result.symbol, pairs, result.start, result.end, unique((*result.open, *names)))
        case Opaque():
            return result
        case _:
            return Opaque(names, result.start, result.end)


def merge(value: Result, pairs: list[Pair], unseen: list[str], *, may_override: bool = True) -> None:
    """Adds the keys of a dict (`**value`); what cannot be seen goes to `unseen`.

    Unseen keys may give new values to those in `pairs`, unless a key given twice is an error, as in a call.
    """
    known: list[str] = []
    match value:
        case Table():
            known.extend(value.open)
        case Opaque(maybe=Table()) | Items(items=(), open=()):
            pass
        case _:
            known.extend(hangs_on([value]) or ("?",))
    if known and may_override:
        for pair in pairs:
            pair.value = Opaque(tuple(known), pair.value.start, pair.value.end, maybe=pair.value)
    unseen.extend(known)
    match value:
        case Table():
            pairs.extend(
                Pair(p.key, p.value, p.start, p.end, p.value_start, p.value_end) for p in value.pairs[:MAX_ITEMS]
            )
        case Opaque(maybe=Table() as maybe):
            pairs.extend(
                Pair(
                    p.key,
                    Opaque(value.hangs_on, p.value.start, p.value.end, maybe=p.value),
                    p.start,
                    p.end,
                    p.value_start,
                    p.value_end,
                )
                for p in maybe.pairs
            )
        case _:
            pass


def add(left: Result, right: Result, start: int, end: int) -> Result | None:
    """`left + right` for texts and lists, None for anything else."""
    match left, right:
        case Text(), Text():
            return strings.joined([left, right], start, end)
        case Text(), Opaque():
            hole = Fragment(None, right.start, right.end, hangs_on=right.hangs_on or ("?",))
            return strings.joined([left, Text((hole,), right.start, right.end)], start, end)
        case Opaque(), Text():
            hole = Fragment(None, left.start, left.end, hangs_on=left.hangs_on or ("?",))
            return strings.joined([Text((hole,), left.start, left.end), right], start, end)
        case Items(), Items():
            if len(left.items) + len(right.items) > MAX_ITEMS:
                return None
            return Items((*left.items, *right.items), start, end, unique((*left.open, *right.open)))
        case Items(), Opaque():
            rest = Opaque(right.hangs_on, right.start, right.end, REST)
            return Items((*left.items, rest), start, end, unique((*left.open, *right.hangs_on)))
        case Opaque(), Items():
            rest = Opaque(left.hangs_on, left.start, left.end, REST)
            return Items((rest, *right.items), start, end, unique((*left.hangs_on, *right.open)))
        case _:
            return None
