"""What an expression comes to at its place: constants, names, arithmetic, strings, lists and dicts, without running anything."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from klaudit.readers.python import changes, containers, functions, objects, strings
from klaudit.readers.python.facts import Facts, Site
from klaudit.readers.python.literals import plain, spell
from klaudit.readers.python.names import dotted, names_in, root_and_path, same_object
from klaudit.readers.python.operators import arithmetic, compared
from klaudit.readers.python.results import (
    MAX_ITEMS,
    REST,
    Constant,
    Fragment,
    Items,
    Made,
    Opaque,
    Pair,
    Result,
    Table,
    Text,
    hangs_on,
    truth,
    unique,
    used_at,
)
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
        self.progress: dict[
            int, tuple[list[tuple[Change, tuple[str, ...]]], Result]
        ] = {}  # by id of a binding: changes so far
        self._busy: set[int] = set()
        self._tests: dict[int, bool | None] = {}
        self._steps = 0
        self._level = 0

    def evaluate(self, node: ast.expr, place: Place) -> Result:
        """What `node` comes to at `place`."""
        if type(node) is ast.Constant:
            return self._constant(node, place)
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
        result = self._stored(binding.value, at)
        if binding.kind == "element":
            known = isinstance(result, Items) and not result.open and binding.element < len(result.items)
            result = (
                result.items[binding.element] if known and isinstance(result, Items) else self.opaque(binding.value, at)
            )
        self._busy.discard(key)
        self._bound[key] = result
        return result

    def _stored(self, node: ast.expr, place: Place) -> Result:
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
        result = self._stored(value, place)
        self._busy.discard(key)
        self._changed[key] = result
        return result

    @staticmethod
    def _start_of(binding: Binding) -> int:
        return position_of(binding.node) if isinstance(binding.node, ast.stmt) else binding.position

    # --- leaves ------------------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant, place: Place) -> Result:
        start, end = self.module.start(node), self.module.end(node)
        value = node.value
        if isinstance(value, str):
            if start in self.module.blanked:
                return self._blanked(start, end)
            return Text(plain(self.module.data, start, end, value), start, end)
        if value is None or isinstance(value, bool | int | float):
            return Constant(value, start, end)
        return Opaque((), start, end)

    def _blanked(self, start: int, end: int) -> Result:
        fragments = spell(self.module.data, start, end)
        if fragments is None:
            return Opaque((self.module.spelling(start, end),), start, end)
        return Text(fragments, start, end)

    def _name(self, node: ast.Name, place: Place) -> Result:
        start, end = self.module.start(node), self.module.end(node)
        found = reaching(node.id, place, self.runs)
        if found is None:
            if node.id == "__name__":  # the file is judged as the program that runs
                return Text((Fragment("__main__", start, end),), start, end)
            return Opaque((node.id,), start, end)
        result = self.named(node.id, found, place)
        if isinstance(result, Text):
            return Text(tuple(used_at(fragment, start, end) for fragment in result.fragments), result.start, result.end)
        if result is not None:
            return result
        imported = found.binding is not None and found.binding.kind == "import"
        return Opaque((found.binding.symbol if found.binding is not None and imported else node.id,), start, end)

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

    def _attribute(self, node: ast.Attribute, place: Place) -> Result:
        start, end = self.module.start(node), self.module.end(node)
        parts = dotted(node)
        if parts is None:
            made = objects.held(self, node, place) if isinstance(node.value, (ast.Call, ast.Attribute)) else None
            return made or Opaque((self.module.spelling(start, end),), start, end)
        root, path = root_and_path(parts)
        found = reaching(root, place, self.runs)
        binding = found.binding if found is not None else None
        if found is not None and binding is not None:
            if binding.kind == "import":
                return Opaque((".".join((binding.symbol, *path)),), start, end)
            if not path:  # self.x
                known = self.named(root, found, place)
                if known is not None:
                    return known
            elif binding.kind in ("value", "element", "class"):
                made = self.option(parts, place) or objects.held(self, node, place)
                if made is not None:
                    return made
        return self.option(parts, place) or Opaque((".".join(parts),), start, end)

    def _joined(self, node: ast.JoinedStr, place: Place) -> Result:
        start, end = self.module.start(node), self.module.end(node)
        fragments = spell(self.module.data, start, end)
        if fragments is None:
            return Opaque((self.module.spelling(start, end),), start, end)
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
                filled.extend(self._field(next(following), fragment, place))
        return strings.joined([Text(tuple(filled), start, end)], start, end)

    def _field(self, node: ast.FormattedValue, hole: Fragment, place: Place) -> tuple[Fragment, ...]:
        spec = ""
        if node.format_spec is not None:
            parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
            if not all(isinstance(part, ast.Constant) for part in parts):
                return (hole,)
            spec = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        spelled = self.module.data[hole.start : hole.end]
        if node.conversion not in (-1, ord("s")) or spelled.rstrip(b"} \t\r\n").endswith(b"="):
            return (hole,)
        value = self.evaluate(node.value, place)
        name = hole.hangs_on[0] if hole.hangs_on else ""
        if isinstance(value, Opaque):
            return (Fragment(None, hole.start, hole.end, hangs_on=value.hangs_on or hole.hangs_on),)
        filled = strings.field(value, spec, hole.start, hole.end, name)
        if isinstance(node.value, (ast.Name, ast.Attribute)):
            return tuple(used_at(fragment, hole.start, hole.end) for fragment in filled)
        # what is written inside the field has no reliable position before Python 3.12
        return tuple(Fragment(f.text, hole.start, hole.end, False, name, f.hangs_on) for f in filled)

    def _inside(self, node: ast.NamedExpr | ast.Starred, place: Place) -> Result:
        return self.evaluate(node.value, place)

    # --- containers --------------------------------------------------------------------------------------------------

    def _items(self, node: ast.List | ast.Tuple | ast.Set, place: Place) -> Result:
        items: list[Result] = []
        unseen: list[str] = []
        for element in node.elts[:MAX_ITEMS]:
            if isinstance(element, ast.Starred):
                part = self.evaluate(element.value, place)
                if isinstance(part, Items):
                    items.extend(part.items)
                    unseen.extend(part.open)
                else:
                    unseen.extend(hangs_on([part]))
                    items.append(Opaque(hangs_on([part]), self.module.start(element), self.module.end(element), REST))
            else:
                items.append(self._stored(element, place))
        return Items(tuple(items), self.module.start(node), self.module.end(node), unique(unseen))

    def _table(self, node: ast.Dict, place: Place) -> Result:
        pairs: list[Pair] = []
        unseen: list[str] = []
        for key_node, value_node in zip(node.keys[:MAX_ITEMS], node.values[:MAX_ITEMS], strict=True):
            if key_node is None:
                containers.merge(self.evaluate(value_node, place), pairs, unseen)
                continue
            key = key_node.value if isinstance(key_node, ast.Constant) else None
            if not isinstance(key, str) or self.module.start(key_node) in self.module.blanked:
                evaluated = self.evaluate(key_node, place)
                key = evaluated.known if isinstance(evaluated, Text) else None
                if key is None:
                    if not isinstance(evaluated, Constant):
                        unseen.extend(hangs_on([evaluated]))
                    continue
            pairs.append(self.pair(key, key_node, value_node, place))
        return Table(tuple(pairs), self.module.start(node), self.module.end(node), unique(unseen))

    def pair(self, key: str, first: ast.expr | ast.keyword, value: ast.expr, place: Place) -> Pair:
        """The entry that begins at `first`."""
        start, end = self.module.start(value), self.module.end(value)
        return Pair(key, self._stored(value, place), self.module.start(first), end, start, end)

    def _subscript(self, node: ast.Subscript, place: Place) -> Result:
        holder = self.evaluate(node.value, place)
        index = self.evaluate(node.slice, place) if not isinstance(node.slice, ast.Slice) else None
        match holder, index:
            case Table(), Text() if index.known is not None:
                found = next((pair.value for pair in reversed(holder.pairs) if pair.key == index.known), None)
                if found is not None and not holder.open:
                    return found
            case Items(), Constant(value=int() as at) if not holder.open and -len(holder.items) <= at < len(
                holder.items
            ):
                return holder.items[at]
            case _:
                pass
        return self.opaque(node, place)

    # --- operators ---------------------------------------------------------------------------------------------------

    def _unary(self, node: ast.UnaryOp, place: Place) -> Result:
        operand = self.evaluate(node.operand, place)
        start, end = self.module.start(node), self.module.end(node)
        if isinstance(node.op, ast.Not):
            verdict = truth(operand)
            return Constant(not verdict, start, end) if verdict is not None else self._unknown(node, (operand,))
        if isinstance(operand, Constant) and isinstance(operand.value, int | float):
            if isinstance(node.op, ast.USub):
                return Constant(-operand.value, start, end)
            if isinstance(node.op, ast.UAdd):
                return Constant(+operand.value, start, end)
        return self._unknown(node, (operand,))

    def _binary(self, node: ast.BinOp, place: Place) -> Result:
        chain = [node]  # `a + b + c ...` leans left, and people join many lines that way
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        result = self.evaluate(chain[-1].left, place)
        for part in reversed(chain):
            result = self._combined(part, result, self.evaluate(part.right, place))
        return result

    def _combined(self, node: ast.BinOp, left: Result, right: Result) -> Result:
        start, end = self.module.start(node), self.module.end(node)
        if isinstance(node.op, ast.Add):
            added = containers.add(left, right, start, end)
            if added is not None:
                return added
        if isinstance(node.op, ast.BitOr) and isinstance(left, Table) and isinstance(right, Table):
            return Table((*left.pairs, *right.pairs), start, end, unique((*left.open, *right.open)))
        if isinstance(node.op, ast.Mod) and isinstance(left, Text):
            values = right.items if isinstance(right, Items) else (right,)
            named = {pair.key: pair.value for pair in right.pairs} if isinstance(right, Table) else {}
            return strings.percent_formatted(left, values, named)
        if isinstance(left, Constant) and isinstance(right, Constant):
            number = arithmetic(type(node.op), left.value, right.value)
            if number is not None:
                return Constant(number, start, end)
        return self._unknown(node, (left, right))

    def _boolean(self, node: ast.BoolOp, place: Place) -> Result:
        seen: list[Result] = []
        for operand in node.values:
            result = self.evaluate(operand, place)
            seen.append(result)
            verdict = truth(result)
            if verdict is None:
                return self._unknown(node, seen)
            if verdict is isinstance(node.op, ast.Or):
                return result
        return seen[-1]

    def _compare(self, node: ast.Compare, place: Place) -> Result:
        operands = [self.evaluate(operand, place) for operand in (node.left, *node.comparators)]
        start, end = self.module.start(node), self.module.end(node)
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            verdict = compared(op, left, right)
            if verdict is None:
                return self._unknown(node, operands)
            if not verdict:
                return Constant(False, start, end)
        return Constant(True, start, end)

    def _conditional(self, node: ast.IfExp, place: Place) -> Result:
        test = self.evaluate(node.test, place)
        verdict = truth(test)
        if verdict is not None:
            return self.evaluate(node.body if verdict else node.orelse, place)
        return self._unknown(node, (test,), names_in(node.test))

    def _unknown(
        self, node: ast.expr, parts: tuple[Result, ...] | list[Result], otherwise: tuple[str, ...] = ()
    ) -> Opaque:
        return Opaque(hangs_on(parts) or otherwise or names_in(node), self.module.start(node), self.module.end(node))


def _environment_names(facts: Facts) -> frozenset[str]:
    """Environment variables that the module sets itself."""
    return frozenset(
        change.path[-1] for change in facts.changes if "environ" in (change.root, *change.path[:-1]) and change.path
    )


_Rule: TypeAlias = "Callable[[Evaluator, Any, Place], Result]"
_RULES: dict[type[ast.expr], _Rule] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.JoinedStr: Evaluator._joined,
    ast.List: Evaluator._items,
    ast.Tuple: Evaluator._items,
    ast.Set: Evaluator._items,
    ast.Dict: Evaluator._table,
    ast.Call: functions.call,
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary,
    ast.BoolOp: Evaluator._boolean,
    ast.Compare: Evaluator._compare,
    ast.IfExp: Evaluator._conditional,
    ast.Subscript: Evaluator._subscript,
    ast.NamedExpr: Evaluator._inside,
    ast.Starred: Evaluator._inside,
}
