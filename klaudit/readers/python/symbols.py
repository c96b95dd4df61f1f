"""Qualified names: what a callee, base class or annotation is called once imports and aliases are followed."""

from __future__ import annotations

import ast

from klaudit.readers.python.names import dotted
from klaudit.readers.python.scopes import Binding, Place, Runs, reaching

MAX_ALIASES = 5


def qualified(node: ast.expr, place: Place, runs: Runs) -> str:
    """The qualified name of a name or attribute chain; the spelling itself where nothing imports it, empty for other expressions."""
    if isinstance(node, ast.Subscript):
        return qualified(node.value, place, runs)
    if isinstance(node, ast.Call):  # get_ipython().system
        inner = qualified(node.func, place, runs)
        return f"{inner}()" if inner else ""
    if isinstance(node, ast.Attribute):
        base = qualified(node.value, place, runs)
        return f"{base}.{node.attr}" if base else ""
    return qualified_name(node.id, place, runs) if isinstance(node, ast.Name) else ""


def qualified_name(name: str, place: Place, runs: Runs) -> str:
    for _ in range(MAX_ALIASES):
        binding = defining(name, place, runs)
        if binding is None:
            return name
        if binding.kind == "import":
            return binding.symbol
        if binding.kind != "value" or binding.value is None:
            return name
        parts = dotted(binding.value) if isinstance(binding.value, ast.Name | ast.Attribute) else None
        if parts is None:
            return name
        if len(parts) > 1:  # Config = package.Config
            return ".".join((qualified_name(parts[0], place, runs) if parts[0] != name else name, *parts[1:]))
        if parts[0] == name:
            return name
        name = parts[0]
    return name


def defining(name: str, place: Place, runs: Runs) -> Binding | None:
    """The binding that says what kind of thing a name is: of several, the one outside `except` handlers, imports and classes first."""
    found = reaching(name, place, runs)
    if found is None:
        return None
    if found.binding is not None:
        return found.binding
    definite = [b for b in found.candidates if b.kind in ("import", "class") and b.block.kind != "handler"]
    return definite[0] if definite else None


def annotation_symbols(node: ast.expr | None, place: Place, runs: Runs) -> tuple[str, ...]:
    """The qualified names in an annotation, outermost first; an annotation in quotes is read too."""
    found: list[str] = []
    pending = [node] if node is not None else []
    while pending:
        part = pending.pop(0)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value) < 200:
            try:
                pending.append(ast.parse(part.value, mode="eval").body)
            except (SyntaxError, ValueError):
                continue
        elif isinstance(part, ast.Name | ast.Attribute):
            found.append(qualified(part, place, runs))
        else:
            pending.extend(child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr))
    return tuple(dict.fromkeys(name for name in found if name))
