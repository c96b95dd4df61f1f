"""Constants, names, attributes and f-strings: what expressions are made of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from klaudit.readers.python import objects, strings
from klaudit.readers.python.literals import plain, spell
from klaudit.readers.python.names import dotted, root_and_path
from klaudit.readers.python.results import Constant, Fragment, Opaque, Result, Text, used_at
from klaudit.readers.python.scopes import Place, reaching

if TYPE_CHECKING:
    from klaudit.readers.python.evaluate import Evaluator


def constant(evaluator: Evaluator, node: ast.Constant, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    value = node.value
    if isinstance(value, str):
        if start in evaluator.module.blanked:
            return _blanked(evaluator, start, end)
        return Text(plain(evaluator.module.data, start, end, value), start, end)
    if value is None or isinstance(value, bool | int | float):
        return Constant(value, start, end)
    return Opaque((), start, end)


def _blanked(evaluator: Evaluator, start: int, end: int) -> Result:
    fragments = spell(evaluator.module.data, start, end)
    if fragments is None:
        return Opaque((evaluator.module.spelling(start, end),), start, end)
    return Text(fragments, start, end)


def name(evaluator: Evaluator, node: ast.Name, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    found = reaching(node.id, place, evaluator.runs)
    if found is None:
        if node.id == "__name__":  # the file is judged as the program that runs
            return Text((Fragment("__main__", start, end),), start, end)
        return Opaque((node.id,), start, end)
    result = evaluator.named(node.id, found, place)
    if isinstance(result, Text):
        return Text(tuple(used_at(fragment, start, end) for fragment in result.fragments), result.start, result.end)
    if result is not None:
        return result
    imported = found.binding is not None and found.binding.kind == "import"
    return Opaque((found.binding.symbol if found.binding is not None and imported else node.id,), start, end)


def attribute(evaluator: Evaluator, node: ast.Attribute, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    parts = dotted(node)
    if parts is None:
        made = objects.held(evaluator, node, place) if isinstance(node.value, (ast.Call, ast.Attribute)) else None
        return made or Opaque((evaluator.module.spelling(start, end),), start, end)
    root, path = root_and_path(parts)
    found = reaching(root, place, evaluator.runs)
    binding = found.binding if found is not None else None
    if found is not None and binding is not None:
        if binding.kind == "import":
            return Opaque((".".join((binding.symbol, *path)),), start, end)
        if not path:  # evaluator.x
            known = evaluator.named(root, found, place)
            if known is not None:
                return known
        elif binding.kind in ("value", "element", "class"):
            made = evaluator.option(parts, place) or objects.held(evaluator, node, place)
            if made is not None:
                return made
    return evaluator.option(parts, place) or Opaque((".".join(parts),), start, end)


def joined(evaluator: Evaluator, node: ast.JoinedStr, place: Place) -> Result:
    start, end = evaluator.module.start(node), evaluator.module.end(node)
    fragments = spell(evaluator.module.data, start, end)
    if fragments is None:
        return Opaque((evaluator.module.spelling(start, end),), start, end)
    fields = [part for part in node.values if isinstance(part, ast.FormattedValue)]
    holes = sum(fragment.text is None for fragment in fragments)
    if len(fields) != holes:  # some of the literals stand for f-strings that `ast` refused
        return Text(fragments, start, end)
    filled: list[Fragment] = []
    following = iter(fields)
    for fragment in fragments:
        if fragment.text is not None:
            filled.append(fragment)
        else:
            filled.extend(_field(evaluator, next(following), fragment, place))
    return strings.joined([Text(tuple(filled), start, end)], start, end)


def _field(evaluator: Evaluator, node: ast.FormattedValue, hole: Fragment, place: Place) -> tuple[Fragment, ...]:
    spec = ""
    if node.format_spec is not None:
        parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
        if not all(isinstance(part, ast.Constant) for part in parts):
            return (hole,)
        spec = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
    spelled = evaluator.module.data[hole.start : hole.end]
    if node.conversion not in (-1, ord("s")) or spelled.rstrip(b"} \t\r\n").endswith(b"="):
        return (hole,)
    value = evaluator.evaluate(node.value, place)
    name = hole.hangs_on[0] if hole.hangs_on else ""
    if isinstance(value, Opaque):
        return (Fragment(None, hole.start, hole.end, hangs_on=value.hangs_on or hole.hangs_on),)
    filled = strings.field(value, spec, hole.start, hole.end, name)
    if isinstance(node.value, (ast.Name, ast.Attribute)):
        return tuple(used_at(fragment, hole.start, hole.end) for fragment in filled)
    # what is written inside the field has no reliable position before Python 3.12
    return tuple(Fragment(f.text, hole.start, hole.end, False, name, f.hangs_on) for f in filled)


def inside(evaluator: Evaluator, node: ast.NamedExpr | ast.Starred, place: Place) -> Result:
    return evaluator.evaluate(node.value, place)
