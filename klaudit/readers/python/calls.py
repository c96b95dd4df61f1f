"""Calls and dict literals as config objects, with what is assigned to them afterwards; loose assignments grouped by name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from klaudit.model import Setting
from klaudit.readers.document import Argument, ConfigObject
from klaudit.readers.python import functions
from klaudit.readers.python.changes import condition_of
from klaudit.readers.python.commands import STARTERS
from klaudit.readers.python.containers import merge
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.names import dotted
from klaudit.readers.python.results import Made, Opaque, Pair, Table, Text, hangs_on, value_of
from klaudit.readers.python.scopes import Binding, Block, Change, Place, position_of, reaching
from klaudit.readers.python.settings import conditional, settings_of
from klaudit.readers.python.symbols import annotation_symbols, defining

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
_PARSED = (
    "parse_args_into_dataclasses",
    "parse_args_and_config",
    "parse_args",
    "parse_dict",
    "parse_yaml_file",
    "parse_json_file",
)


class CallReader:
    """Config objects of one module that are calls, dicts or assignments."""

    def __init__(self, evaluator: Evaluator, facts: Facts) -> None:
        self.evaluator = evaluator
        self.module = evaluator.module
        self.facts = facts
        self._made: dict[int, int] = {}  # by id of a call or dict: its index in `objects`
        self._settings = 0
        self.objects: list[ConfigObject] = []

    def read(self) -> list[ConfigObject]:
        for site in self.facts.calls:
            self._keep(site, self._call)
        for site in self.facts.dicts:
            self._keep(site, self._dict)
        groups: dict[tuple[int, str], tuple[Change, Binding | None, list[Setting]]] = {}
        for change in self.facts.changes:
            self._attach(change, groups)
        for change, binding, settings in groups.values():
            self.objects.append(self._assignments(change, binding, settings))
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
        node = site.node
        if not isinstance(node, ast.Call):
            return None
        if self._is_method_of_a_value(node.func, site.place):
            return None
        symbol = self.evaluator.qualified(node.func, site.place)
        if symbol in _BUILTINS or symbol.partition(".")[0] in _NUMERIC or not symbol:
            return None
        span = self.module.span(self.module.start(node), self.module.end(node))
        if symbol == "dict":
            table = functions.call(self.evaluator, node, site.place)
            if not isinstance(table, Table) or not table.pairs:
                return None
            settings = settings_of(self.module, table.pairs, leaves_only=True)
            return ConfigObject("dict", "", settings, span, site.target, open=table.open, scope=site.place.scope.name)
        last = symbol.rpartition(".")[2]
        pairs, unseen = functions.keywords(self.evaluator, node, site.place)
        arguments = node.args
        if last in functions.FROM_DICT or symbol in ("dataclasses.replace", "copy.replace"):
            made = functions.call(self.evaluator, node, site.place)
            if isinstance(made, Made):
                symbol, pairs, unseen, arguments = made.symbol, made.pairs, made.open, []
        elif last in _READ_ELSEWHERE or symbol in STARTERS:
            return None
        return ConfigObject(
            "call",
            symbol,
            settings_of(self.module, pairs),
            span,
            site.target,
            open=unseen,
            arguments=tuple(self._argument(argument, site.place) for argument in arguments),
            scope=site.place.scope.name,
        )

    def _is_method_of_a_value(self, function: ast.expr, place: Place) -> bool:
        """`x.sum(dim=0)`: a function that nothing names, unlike `module.function(...)` and `Class.method(...)`."""
        if not isinstance(function, ast.Attribute):
            return not isinstance(function, ast.Name)
        if function.attr[:1].isupper() or function.attr in functions.FROM_DICT:
            return False
        parts = dotted(function)
        if parts is None:
            return True
        binding = defining(parts[0], place, self.evaluator.runs)
        if binding is None:  # what a star import may bring in
            return not any(name == "*" for name, _ in self.facts.imports)
        return binding.kind not in ("import", "class")

    def _argument(self, node: ast.expr, place: Place) -> Argument:
        value = value_of(self.evaluator.evaluate(node, place))
        span = self.module.span(self.module.start(node), self.module.end(node))
        parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        named = [self.evaluator.qualified(part, place) for part in parts if isinstance(part, (ast.Name, ast.Attribute))]
        return Argument(value, span, tuple(named))

    def _dict(self, site: Site) -> ConfigObject | None:
        node = site.node
        table = self.evaluator.evaluate(node, site.place)
        if not isinstance(table, Table) or not table.pairs:
            return None
        span = self.module.span(table.start, table.end)
        settings = settings_of(self.module, table.pairs, leaves_only=True)
        return ConfigObject("dict", "", settings, span, site.target, open=table.open, scope=site.place.scope.name)

    # --- what is assigned later --------------------------------------------------------------------------------------

    def _attach(
        self, change: Change, groups: dict[tuple[int, str], tuple[Change, Binding | None, list[Setting]]]
    ) -> None:
        at = Place(change.scope, change.block, position_of(change.node))
        found = reaching(change.root, at, self.evaluator.runs)
        binding = found.binding if found is not None else None
        outer = binding.block if binding is not None else None
        condition = self._condition(change, outer)
        if condition is None:
            return
        pairs, unseen = self._pairs(change, at)
        if condition:
            pairs = [conditional(pair, condition, self.module) for pair in pairs]
        if not pairs:
            return
        index = self._made.get(id(binding.value)) if binding is not None and binding.value is not None else None
        if index is not None and self._takes_attributes(self.objects[index]):
            made = self.objects[index]
            leaves_only = made.kind == "dict"
            added = settings_of(self.module, pairs, leaves_only=leaves_only)
            self.objects[index] = replace(made, settings=made.settings + added, open=(*made.open, *unseen))
        else:
            key = (id(binding) if binding is not None and binding.kind != "other" else id(change.scope), change.root)
            groups.setdefault(key, (change, binding, []))[2].extend(settings_of(self.module, pairs, leaves_only=True))

    @staticmethod
    def _takes_attributes(made: ConfigObject) -> bool:
        """Whether assignments to the bound name change the object itself: a dict or an instance, not what a function returned."""
        return made.kind == "dict" or made.symbol.rpartition(".")[2][:1].isupper()

    def _condition(self, change: Change, outer: Block | None) -> tuple[str, ...] | None:
        """What decides whether a change happens once its object exists; None where it never does."""
        holding = outer.ancestors() if outer is not None else []
        uncertain = False
        for block in change.block.ancestors():
            if block in holding:
                break
            if block.kind in ("arm", "handler"):
                verdict = self.evaluator.runs(block, change.scope)
                if verdict is False:
                    return None
                uncertain = uncertain or verdict is None
        return condition_of(change.block, outer) if uncertain else ()

    def _pairs(self, change: Change, at: Place) -> tuple[list[Pair], tuple[str, ...]]:
        """The keys that a change sets, dotted from its root."""
        start, end = self.module.start(change.node), self.module.end(change.node)
        prefix = ".".join(change.path)
        unseen: list[str] = []
        if change.how in ("=", "+=", "?=", "|=") and change.path and change.values:
            node = change.values[0]
            value = self.evaluator.changed(node, at)
            if change.how != "=" and not isinstance(value, Table):
                value = Opaque(
                    (f"{change.root}.{prefix}", *hangs_on([value])),
                    value.start,
                    value.end,
                    self.module.spelling(start, end),
                )
            return [Pair(prefix, value, start, end, self.module.start(node), self.module.end(node))], ()
        added: list[Pair] = []
        if change.how == "setdefault" and len(change.values) == 2:
            key = self.evaluator.changed(change.values[0], at)
            if isinstance(key, Text) and key.known is not None:
                added.append(self.evaluator.pair(key.known, change.values[0], change.values[1], at))
        elif change.how in ("update", "merge_with", "|="):
            for node in change.values:
                merge(self.evaluator.changed(node, at), added, unseen)
            for keyword in change.keywords:
                if keyword.arg is not None:
                    added.append(self.evaluator.pair(keyword.arg, keyword, keyword.value, at))
                else:
                    merge(self.evaluator.changed(keyword.value, at), added, unseen)
        if prefix:
            added = [Pair(f"{prefix}.{p.key}", p.value, p.start, p.end, p.value_start, p.value_end) for p in added]
        return added, tuple(unseen)

    def _assignments(self, change: Change, binding: Binding | None, settings: list[Setting]) -> ConfigObject:
        at = Place(change.scope, change.block, position_of(change.node))
        symbol = next(self._kind_of(change.root, at, binding), change.root)
        return ConfigObject(
            "assignments", symbol, tuple(settings), settings[0].span, change.root, scope=change.scope.name
        )

    def _kind_of(self, root: str, at: Place, binding: Binding | None) -> Iterator[str]:
        """What class or function the object under a name comes from: its annotation, or the call that made it."""
        if binding is None:
            binding = defining(root, at, self.evaluator.runs)
        if binding is None:
            return
        if isinstance(binding.node, (ast.arg, ast.AnnAssign)):
            yield from annotation_symbols(binding.node.annotation, at, self.evaluator.runs)
        call = binding.value
        if isinstance(call, ast.Call):
            if binding.kind == "element":
                yield from self._parsed_class(call, binding.element, at)
            symbol = self.evaluator.qualified(call.func, at)
            maker, _, method = symbol.rpartition(".")
            if maker.rpartition(".")[2][:1].isupper() and not method[:1].isupper():
                yield maker  # Config.from_cli(...)
            elif symbol:
                yield symbol

    def _parsed_class(self, call: ast.Call, index: int, at: Place) -> Iterator[str]:
        """`a, b = Parser((A, B)).parse_args_into_dataclasses()`: the class that `b` is an instance of."""
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _PARSED:
            return
        maker: ast.expr | None = function.value
        if isinstance(maker, ast.Name):
            found = defining(maker.id, at, self.evaluator.runs)
            maker = found.value if found is not None else None
        if not isinstance(maker, ast.Call):
            return
        classes = (
            maker.args[0] if maker.args else next((k.value for k in maker.keywords if k.arg == "dataclass_types"), None)
        )
        parts = classes.elts if isinstance(classes, (ast.Tuple, ast.List)) else [classes] if classes is not None else []
        if index < len(parts):
            symbol = self.evaluator.qualified(parts[index], at)
            if symbol:
                yield symbol
