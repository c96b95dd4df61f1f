"""Lists, tuples, sets and dicts as they are written out, and what an index takes from them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from klaudit.readers.python.containers import merge
from klaudit.readers.python.results import (
    MAX_ITEMS,
    REST,
    Constant,
    Items,
    Opaque,
    Pair,
    Result,
    Table,
    Text,
    hangs_on,
    unique,
)
from klaudit.readers.python.scopes import Place

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator


def items(evaluator: Evaluator, node: ast.List | ast.Tuple | ast.Set, place: Place) -> Result:
    items: list[Result] = []
    unseen: list[str] = []
    for element in node.elts[:MAX_ITEMS]:
        if isinstance(element, ast.Starred):
            part = evaluator.evaluate(element.value, place)
            if isinstance(part, Items):
                items.extend(part.items)
                unseen.extend(part.open)
                if len(items) > MAX_ITEMS:  # each of a row of such lists can be twice as long as the one before
                    return evaluator.opaque(node, place)
            else:
                unseen.extend(hangs_on([part]))
                items.append(
                    Opaque(hangs_on([part]), evaluator.module.start(element), evaluator.module.end(element), REST)
                )
        else:
            items.append(evaluator.stored(element, place))
    return Items(tuple(items), evaluator.module.start(node), evaluator.module.end(node), unique(unseen))


def table(evaluator: Evaluator, node: ast.Dict, place: Place) -> Result:
    pairs: list[Pair] = []
    unseen: list[str] = []
    for key_node, value_node in zip(node.keys[:MAX_ITEMS], node.values[:MAX_ITEMS], strict=True):
        if key_node is None:
            merge(evaluator.evaluate(value_node, place), pairs, unseen)
            if len(pairs) > MAX_ITEMS:
                return evaluator.opaque(node, place)
            continue
        key = key_node.value if isinstance(key_node, ast.Constant) else None
        if not isinstance(key, str) or evaluator.module.start(key_node) in evaluator.module.blanked:
            evaluated = evaluator.evaluate(key_node, place)
            key = evaluated.known if isinstance(evaluated, Text) else None
            if key is None:
                if not isinstance(evaluated, Constant):
                    unseen.extend(hangs_on([evaluated]))
                continue
        pairs.append(evaluator.pair(key, key_node, value_node, place))
    return Table(tuple(pairs), evaluator.module.start(node), evaluator.module.end(node), unique(unseen))


def subscript(evaluator: Evaluator, node: ast.Subscript, place: Place) -> Result:
    holder = evaluator.evaluate(node.value, place)
    index = evaluator.evaluate(node.slice, place) if not isinstance(node.slice, ast.Slice) else None
    match holder, index:
        case Table(), Text() if index.known is not None:
            found = next((pair.value for pair in reversed(holder.pairs) if pair.key == index.known), None)
            if found is not None and not holder.open:
                return found
        case Items(), Constant(value=int() as at) if not holder.open and -len(holder.items) <= at < len(holder.items):
            return holder.items[at]
        case _:
            pass
    return evaluator.opaque(node, place)
