"""Class bodies with defaults as config objects."""

from __future__ import annotations

import ast

from klaudit.readers.document import ConfigObject, FieldSpec
from klaudit.readers.python.constructors import Constructed, constructed
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
    configs: set[str] = set()  # names of classes, each of which passes on to those that derive from it what a config is
    found: list[ConfigObject] = []
    for site in facts.classes:
        bases = tuple(filter(None, (evaluator.qualified(base, site.place) for base in site.node.bases)))
        is_config = any(base.endswith(_CONFIG_ENDINGS) or base in configs for base in bases)
        if is_config:
            configs.add(site.scope.name)
        made = _class(evaluator, site, bases, constructed(evaluator, site, facts) if is_config else Constructed([], []))
        if is_config or made.arguments:
            found.append(made)
    return found


def _class(evaluator: Evaluator, site: ClassSite, bases: tuple[str, ...], made: Constructed) -> ConfigObject:
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
    module = evaluator.module
    span = module.span(module.start(site.node), module.end(site.node))
    return ConfigObject(
        "class",
        site.scope.name,
        settings_of(module, [*pairs, *made.defaults]),
        span,
        site.node.name,
        bases,
        arguments=tuple(fields),
        scope=site.place.scope.name,
        forced=settings_of(module, made.forced),
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
