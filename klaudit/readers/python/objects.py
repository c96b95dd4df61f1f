"""Attributes of objects that the module itself makes: class defaults, keywords given to a call, enum members."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from klaudit.readers.python.names import callee_name
from klaudit.readers.python.results import Made, Result, Table
from klaudit.readers.python.scopes import EVER, Place
from klaudit.readers.python.symbols import defining

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator
    from klaudit.readers.python.facts import ClassSite

MAX_BASES = 20
FIELD_MAKERS = ("field", "Field", "ib", "attrib", "FieldInfo")


def held(evaluator: Evaluator, node: ast.Attribute, place: Place) -> Result | None:
    """What `object.name` is, None where the object's making does not say."""
    holder = node.value
    site = local_class(evaluator, holder, place) if isinstance(holder, ast.Name) else None
    if site is not None and isinstance(holder, ast.Name):
        assigned = any(change.path == (node.attr,) for change in evaluator.changes_of(holder.id))
        return None if assigned or is_enum(site) else class_default(evaluator, site, node.attr)
    if node.attr == "value" and isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Name):
        site = local_class(evaluator, node.value.value, place)
        return class_default(evaluator, site, node.value.attr) if site is not None and is_enum(site) else None
    made = evaluator.evaluate(node.value, place)
    if not isinstance(made, Made | Table):
        return None
    given = next((pair.value for pair in reversed(made.pairs) if pair.key == node.attr), None)
    if given is not None or made.open or isinstance(made, Table):
        return given
    maker = node.value
    binding = defining(maker.id, place, evaluator.runs) if isinstance(maker, ast.Name) else None
    call = binding.value if binding is not None else maker
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
        site = local_class(evaluator, call.func, place)
        return class_default(evaluator, site, node.attr) if site is not None else None
    return None


def local_class(evaluator: Evaluator, name: ast.Name, place: Place) -> ClassSite | None:
    binding = defining(name.id, place, evaluator.runs)
    return evaluator.classes.get(id(binding.node)) if binding is not None and binding.kind == "class" else None


def is_enum(site: ClassSite) -> bool:
    names = [
        base.attr if isinstance(base, ast.Attribute) else base.id
        for base in site.node.bases
        if isinstance(base, ast.Attribute | ast.Name)
    ]
    return any(name.endswith(("Enum", "Flag")) for name in names)


def class_default(evaluator: Evaluator, site: ClassSite, name: str, seen: int = 0) -> Result | None:
    """The default that a class, or the nearest base of it in this module, gives to an attribute."""
    if seen > MAX_BASES:
        return None
    if name in site.scope.bindings:
        binding = site.scope.bindings[name][-1]
        if len(site.scope.bindings[name]) > 1 or binding.value is None:
            return None
        inside = Place(site.scope, site.scope.root, EVER)
        default = field_default(binding.value)
        if default is binding.value:
            return evaluator.bound(binding, inside)
        return evaluator.evaluate(default, inside) if default is not None else None
    for base in site.node.bases:
        parent = local_class(evaluator, base, site.place) if isinstance(base, ast.Name) else None
        if parent is None:
            return None  # the base comes from elsewhere and may set it
        found = class_default(evaluator, parent, name, seen + 1)
        if found is not None:
            return found
    return None


def field_default(value: ast.expr) -> ast.expr | None:
    """The expression of a field's default: `value` itself unless a field maker wraps it; None where it wraps none."""
    if not isinstance(value, ast.Call):
        return value
    name = callee_name(value.func)
    if name not in FIELD_MAKERS:
        return value
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    if "default" in given:
        return given["default"]
    factory = given.get("default_factory", given.get("factory"))
    if isinstance(factory, ast.Lambda):
        return factory.body
    if factory is not None:
        return ast.copy_location(ast.Call(func=factory, args=[], keywords=[]), factory)
    if name in ("Field", "FieldInfo") and value.args:
        first = value.args[0]
        return None if isinstance(first, ast.Constant) and first.value is Ellipsis else first
    return None


def as_table(made: Made) -> Table:
    """`vars(obj)`, `asdict(obj)`: what the call gave, the rest unseen."""
    return Table(made.pairs, made.start, made.end, (*made.open, f"{made.symbol}()"))
