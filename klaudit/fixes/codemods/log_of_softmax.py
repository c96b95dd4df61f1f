"""KLA307: log(softmax(x)) becomes log_softmax(x), spelled as the file spells its softmax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress

from klaudit.code.result import Formula
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit


def log_softmax(code: Code, formula: Formula) -> Iterator[Proposal]:
    """The one that was found, else with it those of the same statement, else those of the function: a formula may hold two.

    Raises CannotMendError with the reason.
    """
    found = code.at(formula.log_of_softmax)
    if not isinstance(found, ast.expr) or _logged(found) is None:
        raise CannotMendError("the logarithm is not taken of a softmax in one expression")
    first = _edit(code, found)
    for reach in (None, code.statement(found), code.function(found)):
        others = (
            []
            if reach is None
            else [node for node in ast.walk(reach) if isinstance(node, ast.expr) and node is not found]
        )
        edits = [first, *_possible(code, others)]
        yield Proposal(
            target="log_softmax",
            title="compute log_softmax from the logits",
            edits=tuple(edits),
            promise=Promise(formula.placement),
        )


def _possible(code: Code, nodes: list[ast.expr]) -> Iterator[Edit]:
    for node in nodes:
        with suppress(CannotMendError):
            yield _edit(code, node)


def _edit(code: Code, node: ast.expr) -> Edit:
    """Raises CannotMendError where the node is no logarithm of a softmax that can be rewritten."""
    inner = _logged(node)
    if inner is None:
        raise CannotMendError("this is no logarithm")
    if isinstance(inner, ast.Name):
        inner = _value(code, inner, code.statement(node))
    return code.replace(node, _renamed(code, inner))


def _value(code: Code, name: ast.Name, statement: ast.stmt) -> ast.expr:
    """What a name was set to, where that would give the same here."""
    names = Names(code, code.function(name))
    binding = names.definition(name.id, statement)
    if binding is None or binding.value is None:
        raise CannotMendError(f"`{name.id}` is set in more than one way, or elsewhere")
    given = [part.id for part in ast.walk(binding.value) if isinstance(part, ast.Name)]
    if any(names.changes_between(each, statement, binding.statement) for each in given if each != name.id):
        raise CannotMendError(f"what `{name.id}` is computed from changes before its logarithm")
    return binding.value


def _logged(node: ast.AST | None) -> ast.expr | None:
    """What the logarithm is taken of, without a floor under it."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="log"), args=[inner]):
            return _without_floor(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="log"), args=[]):
            return _without_floor(inner)
    return None


def _without_floor(node: ast.expr) -> ast.expr:
    match node:
        case ast.BinOp(left=inner, op=ast.Add(), right=ast.Constant()):
            return inner
        case ast.Call(func=ast.Attribute(value=inner, attr="clamp" | "clamp_min" | "clip")) if not isinstance(
            inner, ast.Name
        ):
            return inner
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="clamp" | "clamp_min"), args=[inner, *_]):
            return inner
    return node


def _renamed(code: Code, node: ast.expr) -> str:
    """The call of softmax as one of log_softmax: function, method, or module made for the purpose."""
    match node:
        case ast.Call(func=ast.Attribute(attr="softmax")):
            start, end = code.extent(node)
            at = code.extent(node.func)[1] - len(b"softmax")
            return (code.data[start:at] + b"log_" + code.data[at:end]).decode()
        case ast.Call(func=ast.Name(id="softmax"), args=[given, *_]) if any(k.arg == "dim" for k in node.keywords):
            dim = next(k.value for k in node.keywords if k.arg == "dim")
            return f"{code.operand(given)}.log_softmax({code.text(dim)})"
    raise CannotMendError("the logarithm is not taken of a softmax in one expression")
