"""`functools.partial(Config, beta=0.1)`: what it holds, and what a call of it makes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from klaudit.readers.python import functions
from klaudit.readers.python.names import callee_name
from klaudit.readers.python.results import Made, unique
from klaudit.readers.python.scopes import Place, position_of, reaching

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator

PARTIAL = "partial"
_SYMBOLS = frozenset({"functools.partial", PARTIAL})
_CALL = b"partial("
_MAX_DEPTH = 5


def held(evaluator: Evaluator, node: ast.expr, place: Place, depth: int = 0) -> Made | None:
    """The class that a partial calls and the keywords it gives, later ones last; None for what is no partial of a class."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(node, ast.Name):
        found = reaching(node.id, place, evaluator.runs)
        binding = found.binding if found is not None else None
        if binding is None or found is None or binding.kind != "value" or binding.value is None:
            return None
        at = position_of(binding.node) if isinstance(binding.node, ast.stmt) else binding.position
        return held(evaluator, binding.value, Place(found.place.scope, binding.block, at), depth + 1)
    if not isinstance(node, ast.Call) or callee_name(node.func) != PARTIAL or not node.args:
        return None
    if evaluator.qualified(node.func, place) not in _SYMBOLS:
        return None
    base = held(evaluator, node.args[0], place, depth + 1)
    symbol = base.symbol if base is not None else evaluator.qualified(node.args[0], place)
    if not symbol.rpartition(".")[2][:1].isupper():
        return None
    pairs, unseen = functions.keywords(evaluator, node, place)
    before = base or Made(symbol, (), 0, 0)
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    return Made(symbol, (*before.pairs, *pairs), start, end, unique((*before.open, *unseen)))


def called(evaluator: Evaluator, node: ast.Call, place: Place) -> Made | None:
    """What a call of a partial makes; None for a call of anything else."""
    if _CALL not in evaluator.module.data or not isinstance(node.func, ast.Name | ast.Call):
        return None
    base = held(evaluator, node.func, place)
    if base is None:
        return None
    pairs, unseen = functions.keywords(evaluator, node, place)
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    return Made(base.symbol, (*base.pairs, *pairs), start, end, unique((*base.open, *unseen)))
