"""KLA307: log(softmax(x)) becomes log_softmax(x), spelled as the file spells its softmax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code


def log_softmax(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    node = code.at(formula.log_of_softmax)
    inner = _logged(node)
    if not isinstance(node, ast.expr) or inner is None:
        raise CannotMendError("the logarithm is not taken of a softmax in one expression")
    if isinstance(inner, ast.Name):
        statement = code.statement(node)
        names = Names(code, code.function(node))
        binding = names.definition(inner.id, statement)
        value = binding.value if binding is not None else None
        if value is None or binding is None:
            raise CannotMendError(f"`{inner.id}` is set in more than one way, or elsewhere")
        changed = [name.id for name in ast.walk(value) if isinstance(name, ast.Name)]
        if any(names.changes_between(name, statement, binding.statement) for name in changed if names.bindings(name)):
            raise CannotMendError(f"what `{inner.id}` is computed from changes before its logarithm")
        inner = value
    text = _renamed(code, inner)
    yield Proposal(
        target="log_softmax",
        title="compute log_softmax from the logits",
        edits=(code.replace(node, text),),
        promise=Promise(formula.placement),
    )


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
