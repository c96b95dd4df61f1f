"""Tables of functions that a module fills after making them: by decorators with a name, or entry by entry."""

from __future__ import annotations

import ast

from klaudit.code.modules import FunctionInfo, Module


def entries_of(name: str, module: Module) -> dict[str, FunctionInfo | ast.expr]:
    """What the top level of a module puts into the table `name`, by key.

    `@register("k3")` counts where the body of `register` stores into the table, `@table.register("k3")` always.
    """
    registrars = {info.name for info in module.functions.values() if _stores_into(name, info.syntax)}
    found: dict[str, FunctionInfo | ast.expr] = {}
    for info in module.functions.values():
        for decorator in getattr(info.syntax, "decorator_list", []):
            if isinstance(decorator, ast.Call) and decorator.args and _registers(decorator.func, name, registrars):
                _enter(found, decorator.args[0], info)
    for statement in module.syntax.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Subscript) and _is_named(target.value, name):
                    _enter(found, target.slice, statement.value)
    return found


def _enter(found: dict[str, FunctionInfo | ast.expr], key: ast.expr, value: FunctionInfo | ast.expr) -> None:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        found[key.value] = value


def _registers(decorator: ast.expr, table: str, registrars: set[str]) -> bool:
    if isinstance(decorator, ast.Name):
        return decorator.id in registrars
    return isinstance(decorator, ast.Attribute) and _is_named(decorator.value, table)


def _stores_into(table: str, function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_named(node.value, table)
        for node in ast.walk(function)
    )


def _is_named(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Name) and expression.id == name
