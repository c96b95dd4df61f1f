"""KLA308: the arguments of torch's kl_div in the order and form that give KL(pi||ref)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit


def arguments(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    node = code.at(formula.kl_div.span) if formula.kl_div is not None else None
    if not isinstance(node, ast.Call) or formula.kl_div is None:
        raise CannotMendError("the call of kl_div is not to be seen here")
    if any("reduction" in wrong for wrong in formula.kl_div.wrong):
        raise CannotMendError(
            "with another reduction the penalty would grow by the size of the vocabulary: its coefficient must be chosen anew with it"
        )
    given = _given(node)
    one, other = given.get("input"), given.get("target")
    if one is None or other is None:
        raise CannotMendError("the arguments of kl_div are not written out")
    logs = [_logarithm(code, each) for each in (one, other)]
    for first, second in ((logs[0], logs[1]), (logs[1], logs[0])):
        pairs = ((one, first), (other, second))
        edits = [code.replace(each, text) for each, text in pairs if code.text(each) != text]
        yield Proposal(
            target="the right arguments",
            title="kl_div(log pi_ref, log pi, log_target=True): KL(pi||ref)",
            edits=(*edits, *_log_target(code, node, given)),
            promise=Promise(formula.placement, "full", reveals=frozenset({"KLA106"})),
        )


def _given(call: ast.Call) -> dict[str, ast.expr]:
    given = dict(zip(("input", "target", "size_average", "reduce", "reduction", "log_target"), call.args, strict=False))
    given.update((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
    return given


def _logarithm(code: Code, node: ast.expr) -> str:
    """The log-probability of an argument that is one, or its exponential."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="exp"), args=[inner]):
            return code.text(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="exp"), args=[]):
            return code.text(inner)
        case ast.Call(func=ast.Attribute(attr="softmax")):
            start, end = code.extent(node)
            at = code.extent(node.func)[1] - len(b"softmax")
            return (code.data[start:at] + b"log_" + code.data[at:end]).decode()
    return code.text(node)


def _log_target(code: Code, call: ast.Call, given: dict[str, ast.expr]) -> list[Edit]:
    if "log_target" in given:
        said = given["log_target"]
        return [] if isinstance(said, ast.Constant) and said.value is True else [code.replace(said, "True")]
    last = max((*call.args, *(keyword.value for keyword in call.keywords)), key=lambda each: code.extent(each)[1])
    end = code.extent(last)[1]
    return [code.edit(end, end, ", log_target=True")]
