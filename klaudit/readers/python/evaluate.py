"""What an expression comes to at its place, without running anything."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from klaudit.readers.python import changes, displays, functions, leaves, operators
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.names import names_in, same_object
from klaudit.readers.python.results import Items, Made, Opaque, Pair, Result, Table, truth
from klaudit.readers.python.scopes import EVER, Binding, Block, Change, Place, Reaching, Scope, position_of, reaching
from klaudit.readers.python.symbols import qualified

if TYPE_CHECKING:
    from klaudit.readers.python.syntax import Module

MAX_LEVEL = 60  # expressions within expressions, through names too
MAX_STEPS = 400_000  # evaluations in one module: past that everything is unknown


class Evaluator:
    """Evaluates expressions of one module; remembers what each binding came to."""

    def __init__(self, module: Module, facts: Facts) -> None:
        self.module = module
        self.classes = {id(site.node): site for site in facts.classes}
        self.option: Callable[[tuple[str, ...], Place], Opaque | None] = lambda parts, place: None
        self._changes: dict[str, list[Change]] = {}
        for change in facts.changes:
            self._changes.setdefault(change.root, []).append(change)
        self._aliases: dict[str, set[str]] = {}
        for target, value in facts.aliases:
            for name in same_object(value):
                self._aliases.setdefault(name, set()).add(target)
        self.environment_names = _environment_names(facts)
        self._bound: dict[int, Result] = {}
        self._changed: dict[int, Result] = {}
        self.progress: dict[int, changes.Progress] = {}  # by id of a binding: what it has come to so far
        self._busy: set[int] = set()
        self._tests: dict[int, bool | None] = {}
        self._steps = 0
        self._level = 0

    def evaluate(self, node: ast.expr, place: Place) -> Result:
        """What `node` comes to at `place`."""
        if type(node) is ast.Constant:
            return leaves.constant(self, node, place)
        self._steps += 1
        if self._level > MAX_LEVEL or self._steps > MAX_STEPS:
            return self.opaque(node, place)
        follow = _RULES.get(type(node))
        if follow is None:
            return self.opaque(node, place)
        self._level += 1
        try:
            return follow(self, node, place)
        finally:
            self._level -= 1

    def final(self, site: Site) -> Result:
        """The value of a site once everything at its own level has happened to the name it is bound to."""
        if site.target is not None:
            end = Place(site.place.scope, site.place.block, EVER - 1)
            found = reaching(site.target, end, self.runs)
            if found is not None and found.binding is not None and found.binding.value is site.node:
                return self.named(site.target, found, end) or self.evaluate(site.node, site.place)
        return self.evaluate(site.node, site.place)

    def runs(self, block: Block, scope: Scope) -> bool | None:
        """Whether a block runs, as far as its test can be known; loops and handlers may."""
        if block.kind == "body":
            return True
        if block.kind != "arm" or block.test is None or block.parent is None or block.owner is None:
            return None
        key = id(block)
        if key not in self._tests:
            self._tests[key] = None  # what the answer is while it is being worked out
            place = Place(scope, block.parent, position_of(block.owner))
            verdict = truth(self.evaluate(block.test, place))
            self._tests[key] = None if verdict is None else verdict is block.wanted
        return self._tests[key]

    def opaque(self, node: ast.expr, place: Place) -> Opaque:
        """An unknown that hangs on the names in an expression."""
        return Opaque(names_in(node), self.module.start(node), self.module.end(node))

    def qualified(self, node: ast.expr, place: Place) -> str:
        return qualified(node, place, self.runs)

    def bound(self, binding: Binding, place: Place) -> Result | None:
        """What a binding's expression came to where it was bound, None for a loop variable and the like.

        `place` is any place in the scope that holds the binding.
        """
        if binding.value is None or binding.kind not in ("value", "element"):
            return None
        key = id(binding)
        if key in self._bound:
            return self._bound[key]
        if key in self._busy:
            return self.opaque(binding.value, place)
        self._busy.add(key)
        at = Place(place.scope, binding.block, self._start_of(binding))
        result = self.stored(binding.value, at)
        if binding.kind == "element":
            known = isinstance(result, Items) and not result.open and binding.element < len(result.items)
            result = (
                result.items[binding.element] if known and isinstance(result, Items) else self.opaque(binding.value, at)
            )
        self._busy.discard(key)
        self._bound[key] = result
        return result

    def stored(self, node: ast.expr, place: Place) -> Result:
        """A value that is kept under another name or in a container: unknown if it is changed under its own name afterwards."""
        result = self.evaluate(node, place)
        if isinstance(result, (Items, Table, Made)):
            for name in same_object(node):
                if any(change.position > place.position for change in self.changes_of(name)):
                    return Opaque((name,), result.start, result.end)
        return result

    def _aliases_of(self, name: str) -> set[str]:
        """Other names that the module gives to what `name` is bound to."""
        found: set[str] = set()
        pending = [name]
        while pending:
            for alias in self._aliases.get(pending.pop(), ()):
                if alias not in found:
                    found.add(alias)
                    pending.append(alias)
        return found

    def changes_of(self, name: str) -> list[Change]:
        """Changes made through a name anywhere in the module."""
        found = self._changes.get(name, [])
        self._steps += len(found) // 4
        return found

    def changed(self, value: ast.expr, place: Place) -> Result:
        """What a change's operand came to where the change stands."""
        key = id(value)
        if key in self._changed:
            return self._changed[key]
        if key in self._busy:
            return self.opaque(value, place)
        self._busy.add(key)
        result = self.stored(value, place)
        self._busy.discard(key)
        self._changed[key] = result
        return result

    @staticmethod
    def _start_of(binding: Binding) -> int:
        return position_of(binding.node) if isinstance(binding.node, ast.stmt) else binding.position

    def named(self, name: str, found: Reaching, use: Place) -> Result | None:
        """What a name used at `use` is, where `found` says which binding it sees, with what was changed in it since."""
        if found.binding is None:
            return None
        result = self.bound(found.binding, found.place)
        if isinstance(result, (Items, Table, Made)) and any(alias in self._changes for alias in self._aliases_of(name)):
            return Opaque((name,), result.start, result.end)
        if result is None or name not in self._changes:
            return result
        return changes.with_changes(self, result, name, found, use)

    def pair(self, key: str, first: ast.expr | ast.keyword, value: ast.expr, place: Place) -> Pair:
        """The entry that begins at `first`."""
        start, end = self.module.start(value), self.module.end(value)
        return Pair(key, self.stored(value, place), self.module.start(first), end, start, end)


def _environment_names(facts: Facts) -> frozenset[str]:
    """Environment variables that the module sets itself."""
    return frozenset(
        change.path[-1] for change in facts.changes if "environ" in (change.root, *change.path[:-1]) and change.path
    )


_Rule: TypeAlias = "Callable[[Evaluator, Any, Place], Result]"
_RULES: dict[type[ast.expr], _Rule] = {
    ast.Constant: leaves.constant,
    ast.Name: leaves.name,
    ast.Attribute: leaves.attribute,
    ast.JoinedStr: leaves.joined,
    ast.List: displays.items,
    ast.Tuple: displays.items,
    ast.Set: displays.items,
    ast.Dict: displays.table,
    ast.Call: functions.call,
    ast.UnaryOp: operators.unary,
    ast.BinOp: operators.binary,
    ast.BoolOp: operators.boolean,
    ast.Compare: operators.compare,
    ast.IfExp: operators.conditional,
    ast.Subscript: displays.subscript,
    ast.NamedExpr: leaves.inside,
    ast.Starred: leaves.inside,
}
