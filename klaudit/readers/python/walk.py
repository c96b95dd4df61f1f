"""The one walk over a module's tree: what is bound, changed, called and written down, each with its place.  It evaluates nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Literal

from klaudit.readers.python.expressions import ExpressionWalker, bind_other
from klaudit.readers.python.facts import ClassSite, Facts
from klaudit.readers.python.names import dotted, root_and_path, root_of, same_object
from klaudit.readers.python.scopes import Binding, BindingKind, Block, Place, Scope, end_of, position_of
from klaudit.readers.python.syntax import Module

_PASSED_ON = (ast.Name, ast.IfExp, ast.BoolOp, ast.Call)
_CONSTRUCTORS = ("__init__", "__post_init__")
_OPERATORS = {ast.Add: "+=", ast.BitOr: "|="}


def walk(module: Module) -> Facts:
    """Everything in the module that settings can come from."""
    root = Block("body")
    facts = Facts(Scope("module", "", None, None, root))
    _Walker(module, facts).run()
    return facts


class _Walker:
    def __init__(self, module: Module, facts: Facts) -> None:
        self.module = module
        self.facts = facts
        self.pending: list[tuple[ast.stmt, Scope, Block]] = []
        self.expressions = ExpressionWalker(module.data, module.line_starts, facts)

    def run(self) -> None:
        self._push(self.module.tree.body, self.facts.scope, self.facts.scope.root)
        while self.pending:
            statement, scope, block = self.pending.pop()
            place = Place(scope, block, (statement.lineno << 24) + statement.col_offset)
            _RULES.get(type(statement), _Walker._other)(self, statement, place)

    def _push(self, body: Sequence[ast.stmt], scope: Scope, block: Block) -> None:
        self.pending.extend([(statement, scope, block) for statement in reversed(body)])

    # --- statements --------------------------------------------------------------------------------------------------

    def _assignment(self, node: ast.Assign, place: Place) -> None:
        self._assign(node, node.targets, node.value, place)
        self._visit(node.value, place)
        for target in node.targets:
            if type(target) is not ast.Name:
                self._visit(target, place)

    def _annotated(self, node: ast.AnnAssign, place: Place) -> None:
        if node.value is not None:
            self._assign(node, [node.target], node.value, place)
            self._visit(node.value, place)

    def _augmented(self, node: ast.AugAssign, place: Place) -> None:
        parts = dotted(node.target)
        if parts is not None:
            root, path = root_and_path(parts)
            self.expressions.change(root, path, _OPERATORS.get(type(node.op), "?="), (node.value,), node, place)
        else:
            self._changed_somehow(node.target, node.value, node, place)
        self._visit(node.value, place)

    def _expression(self, node: ast.Expr, place: Place) -> None:
        self._visit(node.value, place)

    def _if(self, node: ast.If, place: Place) -> None:
        other = Block("arm", place.block, node, node.test, False, _leaves(node.orelse))
        self._push(node.orelse, place.scope, other)
        self._push(node.body, place.scope, Block("arm", place.block, node, node.test, True, _leaves(node.body)))
        self._visit(node.test, place)

    def _for(self, node: ast.For | ast.AsyncFor, place: Place) -> None:
        self._push(node.orelse, place.scope, place.block)
        self._push(node.body, place.scope, Block("loop", place.block, node))
        bind_other(node.target, place.scope, place.block, end_of(node.iter))
        self._visit(node.iter, place)

    def _while(self, node: ast.While, place: Place) -> None:
        self._push(node.orelse, place.scope, place.block)
        self._push(node.body, place.scope, Block("loop", place.block, node))
        self._visit(node.test, place)

    def _with(self, node: ast.With | ast.AsyncWith, place: Place) -> None:
        self._push(node.body, place.scope, place.block)
        for item in node.items:
            if item.optional_vars is not None:
                bind_other(item.optional_vars, place.scope, place.block, end_of(item.context_expr))
            self._visit(item.context_expr, place)

    def _names_from_outside(self, node: ast.Global | ast.Nonlocal, place: Place) -> None:
        kind: Literal["global", "nonlocal"] = "global" if isinstance(node, ast.Global) else "nonlocal"
        place.scope.outer_names.update(dict.fromkeys(node.names, kind))

    def _match(self, node: ast.Match, place: Place) -> None:
        for case in reversed(node.cases):
            arm = Block("arm", place.block, node, None, True, _leaves(case.body))
            self._push(case.body, place.scope, arm)
            for pattern in ast.walk(case.pattern):
                name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                if isinstance(name, str):
                    place.scope.bind(Binding(name, "other", place.position, arm))
        self._visit(node.subject, place)

    def _delete(self, node: ast.Delete, place: Place) -> None:
        for target in node.targets:
            parts = dotted(target) if isinstance(target, (ast.Attribute, ast.Subscript)) else None
            if parts is not None:
                root, path = root_and_path(parts)
                self.expressions.change(root, path, "del", (), node, place)
            elif isinstance(target, ast.Subscript):
                self._changed_somehow(target, target.slice, node, place)
            bind_other(target, place.scope, place.block, end_of(node))

    def _other(self, node: ast.stmt, place: Place) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._visit(child, place)

    def _visit(self, node: ast.expr, place: Place) -> None:
        if type(node) is not ast.Name and type(node) is not ast.Constant:
            self.expressions.walk(node, place)

    def _assign(self, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr, place: Place) -> None:
        position = end_of(node)
        for target in targets:
            if isinstance(target, ast.Name):
                place.scope.bind(Binding(target.id, "value", position, place.block, value, node=node))
                self.expressions.assigned(value, target.id, place)
                if type(value) in _PASSED_ON and same_object(value):
                    self.facts.aliases.append((target.id, value))
            elif isinstance(target, (ast.Tuple, ast.List)):
                kind: BindingKind = "element"
                for index, element in enumerate(target.elts):
                    if isinstance(element, ast.Starred):
                        kind = "other"  # nobody knows which position the later ones have
                    if isinstance(element, ast.Name):
                        place.scope.bind(Binding(element.id, kind, position, place.block, value, index, node=node))
                    elif isinstance(element, (ast.Attribute, ast.Subscript)):
                        self._changed_somehow(element, value, node, place)
                    else:
                        bind_other(element, place.scope, place.block, position)
            elif (parts := dotted(target)) is not None:
                root, path = root_and_path(parts)
                if path:
                    self.expressions.change(root, path, "=", (value,), node, place)
                    self.expressions.assigned(value, ".".join(parts), place)
                else:
                    place.scope.bind(Binding(root, "value", position, place.block, value, node=node))
                    self.expressions.assigned(value, root, place)
            else:
                self._changed_somehow(target, value, node, place)

    def _changed_somehow(self, target: ast.expr, value: ast.expr, node: ast.stmt, place: Place) -> None:
        """`x[i] = v`, and one of several targets: something in `x` is new."""
        root = root_of(target)
        if root is not None:
            self.expressions.change(root, (), "?=", (value,), node, place)

    def _import(self, node: ast.Import | ast.ImportFrom, place: Place) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                local = alias.asname or alias.name.split(".")[0]
                symbol = alias.name if alias.asname else local
            else:
                package = self._package(node)
                if alias.name == "*":
                    self.facts.imports.append(("*", package))
                    continue
                local, symbol = alias.asname or alias.name, f"{package}.{alias.name}" if package else alias.name
            place.scope.bind(Binding(local, "import", end_of(node), place.block, symbol=symbol))
            self.facts.imports.append((local, symbol))
            self.expressions.imported(local, symbol)

    def _package(self, node: ast.ImportFrom) -> str:
        """The module imported from; a relative one counted from the file's own folder."""
        if not node.level:
            return node.module or ""
        here = self.module.package
        base = here[: len(here) - node.level + 1] if node.level <= len(here) + 1 else ()
        return ".".join((*base, *([node.module] if node.module else ())))

    def _try(self, node: ast.Try, place: Place) -> None:
        scope, block = place.scope, place.block
        self._push(node.finalbody, scope, block)
        for handler in reversed(node.handlers):
            caught = Block("handler", block, node, leaves=_leaves(handler.body))
            self._push(handler.body, scope, caught)
            if handler.name is not None:
                scope.bind(Binding(handler.name, "other", place.position, caught))
        goes_on = any(not _leaves(handler.body) for handler in node.handlers)
        body = Block("tried", block, node) if goes_on else block  # else what follows has seen all of it
        self._push([*node.body, *node.orelse], scope, body)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: Place) -> None:
        scope = place.scope
        scope.bind(Binding(node.name, "function", position_of(node), place.block, node=node))
        self.facts.functions.append((node, place))
        inner = Scope("function", _qualified(scope, node.name), scope, place, Block("body"))
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [*[None] * (len(named) - len(arguments.defaults)), *arguments.defaults]
        defaults += arguments.kw_defaults
        for argument, default in zip([*named, *arguments.kwonlyargs], defaults, strict=True):
            inner.bind(Binding(argument.arg, "parameter", 0, inner.root, default, node=argument))
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                inner.bind(Binding(extra.arg, "other", 0, inner.root))
        for expression in (*node.decorator_list, *defaults):
            if expression is not None:
                self._visit(expression, place)
        if scope.kind == "class" and node.name in _CONSTRUCTORS:
            self.facts.constructors.append(inner)
        self._push(node.body, inner, inner.root)

    def _class(self, node: ast.ClassDef, place: Place) -> None:
        scope = place.scope
        scope.bind(Binding(node.name, "class", end_of(node), place.block, node=node))
        inner = Scope("class", _qualified(scope, node.name), scope, place, Block("body"))
        self.facts.classes.append(ClassSite(node, place, inner))
        for expression in (*node.decorator_list, *(keyword.value for keyword in node.keywords)):
            self._visit(expression, place)
        self._push(node.body, inner, inner.root)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise))


def _qualified(scope: Scope, name: str) -> str:
    return f"{scope.name}.{name}" if scope.name else name


_RULES: dict[type[ast.stmt], Callable[[_Walker, Any, Place], None]] = {
    ast.Assign: _Walker._assignment,
    ast.AnnAssign: _Walker._annotated,
    ast.AugAssign: _Walker._augmented,
    ast.Expr: _Walker._expression,
    ast.If: _Walker._if,
    ast.For: _Walker._for,
    ast.AsyncFor: _Walker._for,
    ast.While: _Walker._while,
    ast.With: _Walker._with,
    ast.AsyncWith: _Walker._with,
    ast.Import: _Walker._import,
    ast.ImportFrom: _Walker._import,
    ast.FunctionDef: _Walker._function,
    ast.AsyncFunctionDef: _Walker._function,
    ast.ClassDef: _Walker._class,
    ast.Global: _Walker._names_from_outside,
    ast.Nonlocal: _Walker._names_from_outside,
    ast.Match: _Walker._match,
    ast.Delete: _Walker._delete,
    ast.Try: _Walker._try,
    getattr(ast, "TryStar", ast.Try): _Walker._try,  # Python 3.11
}
