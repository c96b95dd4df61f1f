"""What is computed for nothing once a penalty has left the loss: assignments that no other code reads."""

from __future__ import annotations

import ast

from klaudit.code import names as words
from klaudit.fixes.codemods.joint import Joint
from klaudit.fixes.codemods.names import Binding, Names
from klaudit.fixes.codemods.text import Code

_HARMLESS = frozenset(
    {"exp", "clamp", "clip", "mean", "sum", "square", "abs", "pow", "expm1", "float", "detach", "where", "log"}
)
_ARITHMETIC = (
    ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.keyword,
    ast.expr_context,
)  # fmt: skip
_LIBRARIES = frozenset({"torch", "F", "np", "jnp"})


def leftovers(code: Code, names: Names, joint: Joint, needed: set[str]) -> list[ast.stmt]:
    """Statements before the loss that only serve the penalty and have no effect of their own; `needed` are names that stay in use."""
    gone: list[ast.stmt] = []
    removed: set[int] = {id(node) for node in ast.walk(_taken(joint))}
    waiting = [name.id for name in ast.walk(joint.penalty) if isinstance(name, ast.Name)]
    while waiting:
        name = waiting.pop()
        bindings = names.bindings(name)
        if (
            not bindings
            or name in needed
            or name in names.parameters
            or not all(_is_harmless(each) for each in bindings)
        ):
            continue
        own = {id(node) for each in bindings for node in ast.walk(each.statement)}
        if any(id(read) not in removed | own for read in names.reads(name)):
            continue
        for each in bindings:
            if each.statement not in gone and code.function(each.statement) is names.function:
                gone.append(each.statement)
                removed |= {id(node) for node in ast.walk(each.statement)}
                waiting += [node.id for node in ast.walk(each.statement) if isinstance(node, ast.Name)]
    return gone


def _taken(joint: Joint) -> ast.AST:
    return joint.statement if joint.is_moved_onto_itself else joint.penalty


def _is_harmless(binding: Binding) -> bool:
    """One name set to arithmetic of tensors, nothing that is done by the way."""
    statement, value = binding.statement, binding.value
    if value is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return all(
        isinstance(node, _ARITHMETIC) or (isinstance(node, ast.Call) and _is_known(node)) for node in ast.walk(value)
    )


def _is_known(call: ast.Call) -> bool:
    """A method or function of tensors, or one that by its name averages or computes a divergence, and logs nothing."""
    function = call.func
    name = ast.unparse(function).rpartition(".")[2]
    if words.is_aggregation(name) or words.speaks_of_kl(name):
        return not words.is_metric(name)
    return isinstance(function, ast.Attribute) and (
        function.attr in _HARMLESS or (isinstance(function.value, ast.Name) and function.value.id in _LIBRARIES)
    )
