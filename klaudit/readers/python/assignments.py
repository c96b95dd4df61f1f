"""What is assigned to objects after they are made: added to their settings, or grouped by name where nothing shows their making."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from klaudit.model import Setting
from klaudit.readers.document import ConfigObject
from klaudit.readers.python.changes import condition_of
from klaudit.readers.python.containers import merge
from klaudit.readers.python.evaluate import Evaluator
from klaudit.readers.python.results import Opaque, Pair, Table, Text, hangs_on
from klaudit.readers.python.scopes import Binding, Block, Change, Place, position_of, reaching
from klaudit.readers.python.settings import conditional, settings_of
from klaudit.readers.python.symbols import annotation_symbols, defining

_SETTERS = ("=", "+=", "?=", "|=")
_UPDATES = ("update", "merge_with", "|=")
_PARSES = (
    "parse_args_into_dataclasses",
    "parse_args_and_config",
    "parse_args",
    "parse_dict",
    "parse_yaml_file",
    "parse_json_file",
)


class AssignmentReader:
    """Assignments of one module; `made` says where in `objects` a call or dict stands, by the id of its node."""

    def __init__(self, evaluator: Evaluator, objects: list[ConfigObject], made: dict[int, int]) -> None:
        self.evaluator = evaluator
        self.module = evaluator.module
        self.objects = objects
        self.made = made
        self._groups: dict[tuple[int, str], tuple[Change, Binding | None, list[Setting]]] = {}

    def read(self, changes: list[Change]) -> None:
        """Adds to `objects` what the changes set."""
        for change in changes:
            self._attach(change)
        for change, binding, settings in self._groups.values():
            at = Place(change.scope, change.block, position_of(change.node))
            symbol = next(self._kind_of(change.root, at, binding), change.root)
            span, scope = settings[0].span, change.scope.name
            given = binding is not None and isinstance(binding.node, ast.arg)
            self.objects.append(
                ConfigObject("assignments", symbol, tuple(settings), span, change.root, scope=scope, given=given)
            )

    def _attach(self, change: Change) -> None:
        sets_keys = change.how in (*_SETTERS, *_UPDATES, "setdefault")
        at = Place(change.scope, change.block, position_of(change.node))
        found = reaching(change.root, at, self.evaluator.runs)
        binding = found.binding if found is not None else None
        index = self.made.get(id(binding.value)) if binding is not None and binding.value is not None else None
        if index is not None and not _takes_attributes(self.objects[index]):
            index = None
        if index is None and not sets_keys:
            return
        condition = self._condition(change, binding.block if binding is not None else None)
        if condition is None:
            return
        if index is not None and not sets_keys:
            pairs = self._removed(change, self.objects[index], at)
            unseen: tuple[str, ...] = ()
        else:
            pairs, unseen = self._pairs(change, at)
        if condition:
            pairs = [conditional(pair, condition, self.module) for pair in pairs]
        if index is not None:
            made = self.objects[index]
            added = settings_of(self.module, pairs, leaves_only=made.kind == "dict")
            self.objects[index] = replace(made, settings=made.settings + added, open=(*made.open, *unseen))
        elif pairs:
            key = (id(binding) if binding is not None and binding.kind != "other" else id(change.scope), change.root)
            settings = self._groups.setdefault(key, (change, binding, []))[2]
            settings.extend(settings_of(self.module, pairs, leaves_only=True))

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
        """The keys that a change sets, dotted from its root, and what may set more."""
        start, end = self.module.start(change.node), self.module.end(change.node)
        prefix = ".".join(change.path)
        if change.how in _SETTERS and change.path and change.values:
            node = change.values[0]
            value = self.evaluator.changed(node, at)
            if change.how != "=" and not isinstance(value, Table):
                names = (f"{change.root}.{prefix}", *hangs_on([value]))
                value = Opaque(names, value.start, value.end, self.module.spelling(start, end))
            return [Pair(prefix, value, start, end, self.module.start(node), self.module.end(node))], ()
        unseen: list[str] = []
        added: list[Pair] = []
        if change.how == "setdefault" and len(change.values) == 2:
            key = self.evaluator.changed(change.values[0], at)
            if isinstance(key, Text) and key.known is not None:
                added.append(self.evaluator.pair(key.known, change.values[0], change.values[1], at))
        elif change.how in _UPDATES:
            for node in change.values:
                merge(self.evaluator.changed(node, at), added, unseen)
            for keyword in change.keywords:
                if keyword.arg is not None:
                    added.append(self.evaluator.pair(keyword.arg, keyword, keyword.value, at))
                else:
                    merge(self.evaluator.changed(keyword.value, at), added, unseen)
        elif change.how == "?=":
            unseen.append(self.module.spelling(start, end))
        if prefix:
            added = [Pair(f"{prefix}.{p.key}", p.value, p.start, p.end, p.value_start, p.value_end) for p in added]
        return added, tuple(unseen)

    def _removed(self, change: Change, made: ConfigObject, at: Place) -> list[Pair]:
        """Settings of an object that a change takes away or alters beyond telling: `del x["a"]`, `x.pop("a")`, `x.a.append(v)`."""
        start, end = self.module.start(change.node), self.module.end(change.node)
        path = change.path
        if change.how == "pop" and change.values:
            key = self.evaluator.changed(change.values[0], at)
            path = (*path, key.known) if isinstance(key, Text) and key.known is not None else path
        name = ".".join(path)
        touched = dict.fromkeys(
            s.name for s in made.settings if s.name == name or s.name.startswith(f"{name}.") or not name
        )
        statement = self.module.spelling(start, end)
        return [Pair(each, Opaque((statement,), start, end), start, end, start, end) for each in touched]

    def _kind_of(self, root: str, at: Place, binding: Binding | None) -> Iterator[str]:
        """What class or function the object under a name comes from: its annotation, or the call that made it."""
        binding = binding or defining(root, at, self.evaluator.runs)
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
        if not isinstance(function, ast.Attribute) or function.attr not in _PARSES:
            return
        maker: ast.expr | None = function.value
        if isinstance(maker, ast.Name):
            found = defining(maker.id, at, self.evaluator.runs)
            maker = found.value if found is not None else None
        if not isinstance(maker, ast.Call):
            return
        given = (keyword.value for keyword in maker.keywords if keyword.arg == "dataclass_types")
        classes = maker.args[0] if maker.args else next(given, None)
        parts = classes.elts if isinstance(classes, (ast.Tuple, ast.List)) else [classes] if classes is not None else []
        if index < len(parts):
            symbol = self.evaluator.qualified(parts[index], at)
            if symbol:
                yield symbol


def _takes_attributes(made: ConfigObject) -> bool:
    """Whether assignments to the bound name change the object itself: a dict or an instance, not what a function returned."""
    return made.kind == "dict" or made.symbol.rpartition(".")[2][:1].isupper()
