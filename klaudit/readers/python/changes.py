"""What later statements do to an object: `x += v`, `x["a"] = v`, `x.append(v)`, `x.update(...)`, `x.a = v`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from klaudit.readers.python import strings
from klaudit.readers.python.names import names_in
from klaudit.readers.python.results import (
    MAX_ITEMS,
    Constant,
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
from klaudit.readers.python.scopes import Block, Change, Place, Reaching, happens, position_of

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator


def with_changes(evaluator: Evaluator, result: Result, name: str, found: Reaching) -> Result:
    """The object bound to `name` with every change that has happened to it at the place of use."""
    binding, place = found.binding, found.place
    if binding is None:
        return result
    for change in place.scope.changes[name]:
        if not binding.position < change.position <= place.position:
            continue
        certain = happens(change.block, place, evaluator.runs)
        if certain is not False:
            condition = condition_of(change.block, place.block) if certain is None else ()
            result = _apply(evaluator, result, change, condition)
    return result


def condition_of(block: Block, use: Block | None = None) -> tuple[str, ...]:
    """The names that decide whether `block` runs, given that `use` does."""
    holding = use.ancestors() if use is not None else []
    names: list[str] = []
    for part in block.ancestors():
        if part in holding:
            break
        if part.test is not None:
            names.extend(names_in(part.test))
        elif isinstance(part.owner, ast.For | ast.AsyncFor):
            names.extend(names_in(part.owner.iter))
        elif isinstance(part.owner, ast.While):
            names.extend(names_in(part.owner.test))
        elif isinstance(part.owner, ast.Match):
            names.extend(names_in(part.owner.subject))
        elif part.kind == "handler":
            names.append("an exception")
    return unique(names) or ("a condition",)


def _apply(evaluator: Evaluator, result: Result, change: Change, condition: tuple[str, ...]) -> Result:
    at = Place(change.scope, change.block, position_of(change.node))
    values = [evaluator.changed(value, at) for value in change.values]
    match result:
        case Items() if not change.path:
            return _lengthened(result, change.how, values, condition)
        case Table():
            return _rekeyed(evaluator, result, change, values, condition, at)
        case Made() if change.how == "=" and values:
            return Made(
                result.symbol,
                (*result.pairs, _entry(evaluator, change, values[0], condition)),
                result.start,
                result.end,
                result.open,
            )
        case Text() if not change.path and change.how == "+=" and values:
            return _appended(result, values[0], condition)
        case Constant() | Text() if not change.path:
            added = (
                add(result, values[0], result.start, result.end)
                if change.how == "+=" and values and not condition
                else None
            )
            return added or Opaque(
                condition or hangs_on(values) or (change.root,), result.start, result.end, change.root
            )
        case _:
            return result


def _appended(text: Text, value: Result, condition: tuple[str, ...]) -> Result:
    if condition:
        value = Opaque(condition, value.start, value.end)
    return add(text, value, text.start, text.end) or Opaque(condition, text.start, text.end)


def _lengthened(items: Items, how: str, values: list[Result], condition: tuple[str, ...]) -> Result:
    if not values or len(items.items) > MAX_ITEMS:
        return items
    new = values[-1]
    inside: tuple[Result, ...]
    unseen: tuple[str, ...] = ()
    if how in ("extend", "+="):
        inside = new.items if isinstance(new, Items) else (Opaque(hangs_on(values), new.start, new.end, "*"),)
        unseen = new.open if isinstance(new, Items) else hangs_on(values)
    elif how in ("append", "insert"):
        inside = (new,)
    else:
        return items
    if condition:
        inside = tuple(Opaque(condition, item.start, item.end, maybe=item) for item in inside)
    first = values[0]
    at = (
        first.value
        if how == "insert" and isinstance(first, Constant) and isinstance(first.value, int)
        else len(items.items)
    )
    together = (*items.items[:at], *inside, *items.items[at:])
    return Items(together, items.start, items.end, unique((*items.open, *unseen)))


def _rekeyed(
    evaluator: Evaluator,
    table: Table,
    change: Change,
    values: list[Result],
    condition: tuple[str, ...],
    at: Place,
) -> Result:
    pairs, unseen = list(table.pairs), list(table.open)
    if change.how == "=" and change.path and values:
        entry = _entry(evaluator, change, values[0], condition)
        return Table(_placed(table.pairs, change.path, entry), table.start, table.end, table.open)
    if change.how == "setdefault" and not change.path and len(values) == 2 and isinstance(values[0], Text):
        key = values[0].known
        if key is not None and all(pair.key != key for pair in pairs):
            pairs.append(evaluator.pair(key, change.values[0], change.values[1], at))
            if condition:
                pairs[-1].value = Opaque(condition, values[1].start, values[1].end, maybe=values[1])
    elif change.how in ("update", "|=", "merge_with") and not change.path:
        added: list[Pair] = []
        for value in values:
            merge(value, added, unseen)
        for keyword in change.keywords:
            if keyword.arg is not None:
                added.append(evaluator.pair(keyword.arg, keyword, keyword.value, at))
            else:
                merge(evaluator.changed(keyword.value, at), added, unseen)
        if condition:
            for pair in added:
                pair.value = Opaque(condition, pair.value.start, pair.value.end, maybe=pair.value)
        pairs.extend(added)
    elif change.path or change.how not in ("append", "extend", "insert"):
        unseen.append(".".join((change.root, *change.path)))
    return Table(tuple(pairs), table.start, table.end, unique(unseen))


def _entry(evaluator: Evaluator, change: Change, value: Result, condition: tuple[str, ...]) -> Pair:
    node = change.values[0]
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    if condition:
        value = Opaque(condition, value.start, value.end, maybe=value)
    return Pair(
        ".".join(change.path), value, evaluator.module.start(change.node), evaluator.module.end(change.node), start, end
    )


def _placed(pairs: tuple[Pair, ...], path: tuple[str, ...], entry: Pair) -> tuple[Pair, ...]:
    """The pairs with `entry` put below the keys in `path`."""
    key, rest = path[0], path[1:]
    if not rest:
        return (*pairs, Pair(key, entry.value, entry.start, entry.end, entry.value_start, entry.value_end))
    old = next((pair for pair in reversed(pairs) if pair.key == key), None)
    below = old.value if old is not None and isinstance(old.value, Table) else Table((), entry.start, entry.end)
    inner = Table(_placed(below.pairs, rest, entry), below.start, below.end, below.open)
    span = old or entry
    return (*pairs, Pair(key, inner, span.start, span.end, span.value_start, span.value_end))


def merge(value: Result, pairs: list[Pair], unseen: list[str]) -> None:
    """Adds the keys of a dict (`**value`); what cannot be seen goes to `unseen`."""
    match value:
        case Table():
            pairs.extend(
                Pair(p.key, p.value, p.start, p.end, p.value_start, p.value_end) for p in value.pairs[:MAX_ITEMS]
            )
            unseen.extend(value.open)
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
        case Items(items=(), open=()):
            pass
        case _:
            unseen.extend(hangs_on([value]))


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
            rest = Opaque(right.hangs_on, right.start, right.end, "*")
            return Items((*left.items, rest), start, end, unique((*left.open, *right.hangs_on)))
        case Opaque(), Items():
            rest = Opaque(left.hangs_on, left.start, left.end, "*")
            return Items((rest, *right.items), start, end, unique((*left.hangs_on, *right.open)))
        case _:
            return None
