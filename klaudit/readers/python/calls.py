"""Calls and dict literals as config objects."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from klaudit.readers.document import Argument, ConfigObject
from klaudit.readers.python import functions, partials
from klaudit.readers.python.assignments import AssignmentReader
from klaudit.readers.python.commands import STARTERS
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.names import callee_name, dotted
from klaudit.readers.python.results import Made, Pair, Table, value_of
from klaudit.readers.python.scopes import Place
from klaudit.readers.python.settings import settings_of
from klaudit.readers.python.symbols import defining

MAX_SETTINGS = 50_000  # of one module; the largest seen has 3,000
_BUILTINS = frozenset(
    {"print", "sorted", "max", "min", "open", "sum", "zip", "enumerate", "isinstance", "super", "round", "int"}
)
_NUMERIC = frozenset(
    {"torch", "numpy", "math", "logging", "json", "re", "time", "pandas", "matplotlib", "pytest"}
)  # set nothing up
_READ_ELSEWHERE = frozenset(
    {"add_argument", "option", "add_parser", "set_defaults", "add_argument_group", "field", "Field"}
)
_REPLACE = frozenset({"dataclasses.replace", "copy.replace"})


Matters = Callable[[str], bool]


class CallReader:
    """Config objects of one module that are calls, dicts or assignments.  A call that does not matter keeps its arguments to itself."""

    def __init__(self, evaluator: Evaluator, facts: Facts, matters: Matters) -> None:
        self.evaluator = evaluator
        self.module = evaluator.module
        self.facts = facts
        self._matters = matters
        self._classes = {site.scope.name for site in facts.classes}
        self.objects: list[ConfigObject] = []
        self._made: dict[int, int] = {}  # by id of a call or dict: its index in `objects`
        self._settings = 0
        self._partials: frozenset[int] | None = None
        self._stars = any(name == "*" for name, _ in facts.imports)

    def read(self) -> list[ConfigObject]:
        for site in self.facts.calls:
            self._keep(site, self._call)
        for site in self.facts.dicts:
            self._keep(site, self._dict)
        AssignmentReader(self.evaluator, self.objects, self._made).read(self.facts.changes)
        return self.objects

    @property
    def is_cut(self) -> bool:
        """Whether there was more than anyone wrote by hand, and the rest was left out."""
        return self._settings > MAX_SETTINGS

    def _keep(self, site: Site, make: Callable[[Site], ConfigObject | None]) -> None:
        made = make(site) if not self.is_cut else None
        if made is not None:
            self._settings += len(made.settings)
            self._made[id(site.node)] = len(self.objects)
            self.objects.append(made)

    def _call(self, site: Site) -> ConfigObject | None:
        node, place = site.node, site.place
        if not isinstance(node, ast.Call):
            return None
        if (completed := partials.called(self.evaluator, node, place)) is not None:
            return self._object(site, completed.symbol, completed.pairs, completed.open, node.args)
        if (held := partials.held(self.evaluator, node, place)) is not None:
            if id(node) in self._called_partials():
                return None  # told where it is called, with what is given there
            unseen = (*held.open, "the callers of a partial")
            return self._object(site, held.symbol, held.pairs, unseen, node.args[1:])
        symbol = self._symbol(node.func, place)
        last = symbol.rpartition(".")[2]
        if not symbol or symbol in _BUILTINS or last in _READ_ELSEWHERE or symbol in STARTERS:
            return None
        if symbol.partition(".")[0] in _NUMERIC:
            return None
        if symbol == "dict":
            return self._dict(site)
        span = self.module.span(self.module.start(node), self.module.end(node))
        if not (symbol in self._classes or last in functions.FROM_DICT or symbol in _REPLACE or self._matters(symbol)):
            return ConfigObject("call", symbol, (), span, site.target, scope=place.scope.name)
        arguments = node.args
        if last in functions.FROM_DICT or symbol in _REPLACE:
            made = functions.call(self.evaluator, node, place)
            if not isinstance(made, Made):
                return None
            symbol, pairs, unseen, arguments = made.symbol, made.pairs, made.open, []
        else:
            pairs, unseen = functions.keywords(self.evaluator, node, place)
        return self._object(site, symbol, pairs, unseen, arguments)

    def _object(
        self,
        site: Site,
        symbol: str,
        pairs: tuple[Pair, ...],
        unseen: tuple[str, ...],
        arguments: Sequence[ast.expr],
    ) -> ConfigObject:
        return ConfigObject(
            "call",
            symbol,
            settings_of(self.module, pairs),
            self.module.span(self.module.start(site.node), self.module.end(site.node)),
            site.target,
            open=unseen,
            arguments=tuple(self._argument(argument, site.place) for argument in arguments),
            scope=site.place.scope.name,
        )

    def _called_partials(self) -> frozenset[int]:
        """The partials, by id of their calls, that are bound to a name and called, or completed by another partial, in this module."""
        if self._partials is None:
            used: set[int] = set()
            for site in self.facts.calls:
                if isinstance(site.node, ast.Call):
                    is_more = callee_name(site.node.func) == partials.PARTIAL and site.node.args
                    used |= self._bound_to(site.node.args[0] if is_more else site.node.func, site.place)
            self._partials = frozenset(used)
        return self._partials

    def _bound_to(self, node: ast.expr, place: Place) -> set[int]:
        binding = defining(node.id, place, self.evaluator.runs) if isinstance(node, ast.Name) else None
        return {id(binding.value)} if binding is not None and binding.value is not None else {id(node)}

    def _symbol(self, function: ast.expr, place: Place) -> str:
        """What is called, in full; empty for methods of values (`x.sum(dim=0)`) and whatever else has no name of its own."""
        if isinstance(function, ast.Name):
            return self.evaluator.qualified(function, place)
        parts = dotted(function)
        if parts is None:
            return ""
        binding = defining(parts[0], place, self.evaluator.runs)
        if binding is not None and binding.kind == "import":
            return ".".join((binding.symbol, *parts[1:]))
        names_itself = self._stars if binding is None else binding.kind == "class"
        if names_itself or parts[-1][:1].isupper() or parts[-1] in functions.FROM_DICT:
            return self.evaluator.qualified(function, place)
        return ""

    def _argument(self, node: ast.expr, place: Place) -> Argument:
        value = value_of(self.evaluator.evaluate(node, place))
        span = self.module.span(self.module.start(node), self.module.end(node))
        parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        named = [self.evaluator.qualified(part, place) for part in parts if isinstance(part, (ast.Name, ast.Attribute))]
        return Argument(value, span, tuple(named))

    def _dict(self, site: Site) -> ConfigObject | None:
        table = self.evaluator.evaluate(site.node, site.place)
        if not isinstance(table, Table) or not table.pairs:
            return None
        span = self.module.span(table.start, table.end)
        settings = settings_of(self.module, table.pairs, leaves_only=True)
        return ConfigObject("dict", "", settings, span, site.target, open=table.open, scope=site.place.scope.name)
