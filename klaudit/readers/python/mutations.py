"""What one statement does to an object: `x += v`, `x["a"] = v`, `x.append(v)`, `x.update(...)`, `x.a = v`, `del x["a"]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klaudit.readers.python.containers import add, merge, uncertain, under
from klaudit.readers.python.results import (
    MAX_ITEMS,
    REST,
    Constant,
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
from klaudit.readers.python.scopes import Change, Place, position_of

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator

_UPDATES = ("update", "|=", "merge_with")


def mutated(evaluator: Evaluator, result: Result, change: Change, condition: tuple[str, ...]) -> Result:
    """The object after a change, which happens only under `condition` if there is one."""
    at = Place(change.scope, change.block, position_of(change.node))
    values = [evaluator.changed(value, at) for value in change.values]
    changed: Result | None = None
    match result:
        case Items() if not change.path:
            changed = _lengthened(result, change.how, values, condition)
        case Table() | Made() if change.how == "=" and change.path and values:
            changed = _assigned(evaluator, result, change, values[0], condition)
        case Table() if len(change.path) == 1 and change.how == "del":
            changed = _without(result, change.path[0], condition)
        case Table() if not change.path:
            changed = _rekeyed(evaluator, result, change, values, condition, at)
        case Made() if not change.path and change.how in _UPDATES:
            table = Table(result.pairs, result.start, result.end, result.open)
            updated = _rekeyed(evaluator, table, change, values, condition, at)
            if isinstance(updated, Table):
                changed = Made(result.symbol, updated.pairs, result.start, result.end, updated.open)
        case Constant() | Text() if not change.path and change.how == "+=" and values:
            changed = _added(result, values[0], condition)
        case Opaque():
            return result
        case _:
            pass
    return changed if changed is not None else uncertain(result, condition or (".".join((change.root, *change.path)),))


def _added(result: Constant | Text, value: Result, condition: tuple[str, ...]) -> Result | None:
    if isinstance(result, Constant):
        plain = (
            isinstance(value, Constant)
            and isinstance(result.value, (int, float))
            and isinstance(value.value, (int, float))
        )
        if not plain or condition or not isinstance(value, Constant):
            return None
        return Constant((result.value or 0) + (value.value or 0), result.start, result.end)
    if condition:
        value = Opaque(condition, value.start, value.end)
    return add(result, value, result.start, result.end)


def _lengthened(items: Items, how: str, values: list[Result], condition: tuple[str, ...]) -> Result | None:
    if not values or len(items.items) > MAX_ITEMS:
        return None
    new = values[-1]
    inside: tuple[Result, ...]
    unseen: tuple[str, ...] = ()
    at = len(items.items)
    if how in ("extend", "+="):
        if not isinstance(new, (Items, Opaque)):
            return None
        inside = new.items if isinstance(new, Items) else (Opaque(hangs_on(values), new.start, new.end, REST),)
        unseen = new.open if isinstance(new, Items) else hangs_on(values)
    elif how == "append":
        inside = (new,)
    elif how == "insert" and len(values) == 2 and isinstance(values[0], Constant) and isinstance(values[0].value, int):
        inside, at = (new,), values[0].value
    else:
        return None
    if condition:
        inside = tuple(Opaque(condition, item.start, item.end, maybe=item) for item in inside)
        unseen = unique((*unseen, *condition))
    together = (*items.items[:at], *inside, *items.items[at:])
    return Items(together, items.start, items.end, unique((*items.open, *unseen)))


def _assigned(
    evaluator: Evaluator, holder: Table | Made, change: Change, value: Result, condition: tuple[str, ...]
) -> Result | None:
    node = change.values[0]
    module = evaluator.module
    entry = Pair(
        ".".join(change.path),
        value,
        module.start(change.node),
        module.end(change.node),
        module.start(node),
        module.end(node),
    )
    if condition:
        entry = under(condition, entry)
    if isinstance(holder, Made):
        return Made(holder.symbol, (*holder.pairs, entry), holder.start, holder.end, holder.open)
    pairs = _placed(holder.pairs, change.path, entry)
    return Table(pairs, holder.start, holder.end, holder.open) if pairs is not None else None


def _placed(pairs: tuple[Pair, ...], path: tuple[str, ...], entry: Pair) -> tuple[Pair, ...] | None:
    """The pairs with `entry` put below the keys in `path`; None where something other than a dict is in the way."""
    key, rest = path[0], path[1:]
    if not rest:
        return (*pairs, Pair(key, entry.value, entry.start, entry.end, entry.value_start, entry.value_end))
    old = next((pair for pair in reversed(pairs) if pair.key == key), None)
    if old is not None and not isinstance(old.value, Table):
        return None
    below = old.value if old is not None and isinstance(old.value, Table) else Table((), entry.start, entry.end)
    placed = _placed(below.pairs, rest, entry)
    if placed is None:
        return None
    span = old or entry
    inner = Table(placed, below.start, below.end, below.open)
    return (*pairs, Pair(key, inner, span.start, span.end, span.value_start, span.value_end))


def _without(table: Table, key: str, condition: tuple[str, ...]) -> Result:
    if not condition:
        return Table(tuple(pair for pair in table.pairs if pair.key != key), table.start, table.end, table.open)
    pairs = tuple(under(condition, pair) if pair.key == key else pair for pair in table.pairs)
    return Table(pairs, table.start, table.end, table.open)


def _rekeyed(
    evaluator: Evaluator,
    table: Table,
    change: Change,
    values: list[Result],
    condition: tuple[str, ...],
    at: Place,
) -> Result | None:
    first = values[0].known if values and isinstance(values[0], Text) else None
    if change.how == "pop" and first is not None:
        return _without(table, first, condition)
    unseen: list[str] = []
    added: list[Pair] = []
    if change.how == "setdefault" and len(values) == 2 and first is not None:
        if table.open or any(pair.key == first for pair in table.pairs):
            return table
        added.append(evaluator.pair(first, change.values[0], change.values[1], at))
    elif change.how in _UPDATES:
        for value in values:
            merge(value, added, unseen)
        for keyword in change.keywords:
            if keyword.arg is not None:
                added.append(evaluator.pair(keyword.arg, keyword, keyword.value, at))
            else:
                merge(evaluator.changed(keyword.value, at), added, unseen)
    else:
        return None
    if condition:
        added = [under(condition, pair) for pair in added]
    pairs = [under(tuple(unseen), pair) for pair in table.pairs] if unseen else list(table.pairs)
    return Table((*pairs, *added), table.start, table.end, unique((*table.open, *unseen)))
