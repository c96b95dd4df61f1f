"""What the constructor of a class sets: `self.beta = 0.0`, `super().__init__(beta=0.0, **given)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from klaudit.readers.python.changes import condition_of
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import ClassSite, Facts
from klaudit.readers.python.results import Pair
from klaudit.readers.python.scopes import Place, Scope, position_of
from klaudit.readers.python.settings import conditional

_SELF = "self."


class Constructed(NamedTuple):
    """`defaults` count where the caller gives nothing, `forced` whatever the caller gives."""

    defaults: list[Pair]
    forced: list[Pair]


class _Assigned(NamedTuple):
    name: str
    whole: ast.stmt | ast.keyword
    value: ast.expr
    place: Place


def constructed(evaluator: Evaluator, site: ClassSite, facts: Facts) -> Constructed:
    """What the constructors in the body of a class make of its fields."""
    found = Constructed([], [])
    for name, whole, value, place in sorted(_assigned(site, facts), key=lambda each: each.place.position):
        parameter = _parameter(value, place.scope)
        if parameter is not None:  # handed through under its own name: its default is the field's
            if parameter == name and (default := place.scope.bindings[name][0].value) is not None:
                found.defaults.append(_pair(evaluator, name, whole, default, place))
                continue
            if parameter == name:
                continue
        pair = _pair(evaluator, name, whole, value, place)
        runs = all(evaluator.runs(block, place.scope) for block in place.block.ancestors())
        if runs:
            found.forced.append(pair)
        elif _fills_a_gap(name, place):
            found.defaults.append(pair)
        elif not any(evaluator.runs(block, place.scope) is False for block in place.block.ancestors()):
            found.forced.append(conditional(pair, condition_of(place.block, None), evaluator.module))
    return found


def _assigned(site: ClassSite, facts: Facts) -> Iterator[_Assigned]:
    scopes = [scope for scope in facts.constructors if scope.parent is site.scope]
    for scope in scopes:
        for name, bindings in scope.bindings.items():
            for each in bindings if name.startswith(_SELF) else ():
                if each.kind == "value" and each.value is not None and isinstance(each.node, ast.stmt):
                    place = Place(scope, each.block, position_of(each.node))
                    yield _Assigned(name.removeprefix(_SELF), each.node, each.value, place)
    for call in facts.calls if scopes else ():
        if isinstance(call.node, ast.Call) and _is_super_init(call.node) and call.place.scope in scopes:
            for keyword in call.node.keywords:
                if keyword.arg is not None:
                    place = Place(call.place.scope, call.place.block, position_of(call.node))
                    yield _Assigned(keyword.arg, keyword, keyword.value, place)


def _is_super_init(node: ast.Call) -> bool:
    match node.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            return True
    return False


def _parameter(value: ast.expr, scope: Scope) -> str | None:
    """The parameter that an expression is, as it was given."""
    bindings = scope.bindings.get(value.id, []) if isinstance(value, ast.Name) else []
    return bindings[0].name if len(bindings) == 1 and bindings[0].kind == "parameter" else None


def _fills_a_gap(name: str, place: Place) -> bool:
    """`if self.beta is None: self.beta = 0.04`: what was given stays."""
    match place.block.test:
        case ast.Compare(
            left=ast.Attribute(value=ast.Name(id="self"), attr=attribute),
            ops=[ast.Is()],
            comparators=[ast.Constant(value=None)],
        ):
            return attribute == name and place.block.wanted and place.block.parent is place.scope.root
    return False


def _pair(evaluator: Evaluator, name: str, whole: ast.stmt | ast.keyword, value: ast.expr, place: Place) -> Pair:
    module = evaluator.module
    result = evaluator.evaluate(value, place)
    return Pair(name, result, module.start(whole), module.end(whole), module.start(value), module.end(value))
