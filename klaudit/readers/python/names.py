"""Names as expressions spell them: dotted chains, what an object is kept under, what an expression reads."""

from __future__ import annotations

import ast


def dotted(node: ast.expr) -> tuple[str, ...] | None:
    """`a.b["c"].d` as its parts, None for anything else."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)):
                return None
            parts.append(node.slice.value)
            node = node.value
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            parts.reverse()
            return tuple(parts)
        else:
            return None


def root_and_path(parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The name an object is kept under, and the way from there; an attribute of `self` counts as a name of its own."""
    if parts[0] in ("self", "cls") and len(parts) > 1:
        return f"{parts[0]}.{parts[1]}", parts[2:]
    return parts[0], parts[1:]


def names_in(node: ast.expr) -> tuple[str, ...]:
    """The dotted names an expression reads, the longest form of each, in order; at most eight."""
    found: list[str] = []
    pending: list[ast.expr] = [node]
    for part in pending:  # it grows as we go
        if len(found) >= 8:
            break
        if isinstance(part, ast.Name):
            found.append(part.id)
        elif isinstance(part, ast.Call):
            callee = dotted(part.func)
            if callee is not None:
                found.append(f"{'.'.join(callee)}()")
            else:
                pending.append(part.func)
            pending.extend(part.args)
        elif not isinstance(part, ast.Constant):
            parts = dotted(part) if isinstance(part, (ast.Attribute, ast.Subscript)) else None
            if parts is not None:
                found.append(".".join(parts))
            elif len(pending) < 200:
                pending.extend([child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)])
    return tuple(dict.fromkeys(found))


def same_object(node: ast.expr) -> tuple[str, ...]:
    """The names whose very object an expression may be: `x`, `x if c else y`, `x or y`, `d.get("k", x)`."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.IfExp):
        return (*same_object(node.body), *same_object(node.orelse))
    if isinstance(node, ast.BoolOp):
        return tuple(name for value in node.values for name in same_object(value))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("get", "pop", "setdefault")
    ):
        return tuple(name for value in node.args[1:] for name in same_object(value))
    return ()


def root_of(node: ast.expr) -> str | None:
    """The name that an assignment's target changes something in."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def callee_name(function: ast.expr) -> str:
    """The last part of what is called, empty for what has no name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
