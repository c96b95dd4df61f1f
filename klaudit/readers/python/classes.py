"""Class bodies with defaults as config objects."""

from __future__ import annotations

import ast

from klaudit.readers.document import ConfigObject, FieldSpec
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import ClassSite, Facts
from klaudit.readers.python.objects import field_default
from klaudit.readers.python.results import Made, Opaque, Pair
from klaudit.readers.python.scopes import EVER, Place, position_of
from klaudit.readers.python.settings import settings_of
from klaudit.readers.python.symbols import annotation_symbols

_CONFIG_ENDINGS = ("Config", "Arguments", "Args", "Params", "Strategy", "Options")
_NOT_FIELDS = frozenset({"ClassVar", "typing.ClassVar"})


def read_classes(evaluator: Evaluator, facts: Facts) -> list[ConfigObject]:
    """Every class with defaults, and every class that derives from what is named like a config."""
    return [made for site in facts.classes if (made := _class(evaluator, site)) is not None]


def _class(evaluator: Evaluator, site: ClassSite) -> ConfigObject | None:
    bases = tuple(filter(None, (evaluator.qualified(base, site.place) for base in site.node.bases)))
    pairs: list[Pair] = []
    fields: list[FieldSpec] = []
    for statement in site.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            _field(
                evaluator, site, statement, statement.target.id, statement.value, statement.annotation, pairs, fields
            )
        elif (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            _field(evaluator, site, statement, statement.targets[0].id, statement.value, None, pairs, fields)
    if not fields and not any(base.endswith(_CONFIG_ENDINGS) for base in bases):
        return None
    module = evaluator.module
    span = module.span(module.start(site.node), module.end(site.node))
    settings = settings_of(module, pairs)
    return ConfigObject(
        "class",
        site.scope.name,
        settings,
        span,
        site.node.name,
        bases,
        arguments=tuple(fields),
        scope=site.place.scope.name,
    )


def _field(
    evaluator: Evaluator,
    site: ClassSite,
    statement: ast.stmt,
    name: str,
    value: ast.expr | None,
    annotation: ast.expr | None,
    pairs: list[Pair],
    fields: list[FieldSpec],
) -> None:
    module = evaluator.module
    place = Place(site.scope, site.scope.root, position_of(statement))
    types = annotation_symbols(annotation, place, evaluator.runs)
    if types and types[0] in _NOT_FIELDS and value is None:
        return
    start, end = module.start(statement), module.end(statement)
    default = field_default(value) if value is not None else None
    factory: str | None = None
    given: tuple[Pair, ...] = ()
    if default is not None:
        result = evaluator.evaluate(
            default, Place(site.scope, site.scope.root, EVER) if default is not value else place
        )
        if isinstance(result, Made):
            factory, given = result.symbol, result.pairs
        elif isinstance(result, Opaque) and isinstance(default, ast.Call):
            factory = evaluator.qualified(default.func, place) or None
        pairs.append(Pair(name, result, start, end, module.start(default), module.end(default)))
    spec = FieldSpec(name, types, module.span(start, end), factory, settings_of(module, given), default is None)
    fields.append(spec)
