"""A penalty of the loss -> k2 in its place: the gradient of KL(pi||ref) per token, with nothing else to change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.ratio import LogRatio, log_ratio
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit

TARGET = "k2-in-loss"
_PER_TOKEN = (
    "exact per token only: a token gets no credit for the KL of later tokens, as k1 in the reward of the whole response "
    "would give it"
)
_METRICS = "metrics that log this value show k2 from now on, which estimates the same KL with a little bias"


def to_k2(code: Code, formula: Formula, *, is_weighted: bool = False) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason, CannotEditError."""
    ratio = log_ratio(code, formula)
    text = f"0.5 * ({ratio.written(code)}) ** 2"
    for node in written_at(code, formula, ratio):
        yield Proposal(
            target=TARGET,
            title="replace the estimator by k2, 0.5 * (log pi - log pi_ref)^2, in the loss",
            edits=(code.in_place_of(node, text), *unread_difference(code, node, ratio)),
            promise=Promise(
                "loss", "k2", is_unbiased=True, reveals=frozenset({"KLA106"}), keeps_coefficient=not is_weighted
            ),
            notes=(_PER_TOKEN, _METRICS),
        )


def written_at(code: Code, formula: Formula, ratio: LogRatio) -> list[ast.expr]:
    """The expressions that may be the estimator, in the function of its loss or reward: alone, and with a number that belongs to it.

    Raises CannotMendError where it stands in a helper whose other arguments count.
    """
    if isinstance(ratio.node, ast.Call) and ratio.node is not code.at(formula.difference):
        if ratio.is_masked:
            raise CannotMendError("it is computed by a helper that takes more than log pi and log pi_ref")
        return [ratio.node]
    node = code.at(formula.span)
    if not isinstance(node, ast.expr):
        raise CannotMendError("the formula is no expression of its own")
    node = _inside_clamp(code, node)
    match code.parents[node]:
        case (
            ast.BinOp(op=ast.Mult(), left=ast.Constant())
            | ast.BinOp(op=ast.Mult() | ast.Div(), right=ast.Constant()) as whole
        ):
            return [node, whole]
    return [node]


def _inside_clamp(code: Code, node: ast.expr) -> ast.expr:
    """A clamp of a name is left as it is: what the name was set to is the estimator."""
    match node:
        case ast.Call(func=ast.Attribute(attr="clamp" | "clip"), args=[ast.Name(id=name), *_]):
            statement = code.statement(node)
            binding = Names(code, code.function(node)).definition(name, statement)
            if binding is not None and binding.value is not None:
                return binding.value
    return node


def unread_difference(code: Code, node: ast.expr, ratio: LogRatio) -> Iterator[Edit]:
    """Where the difference had a name that only the old formula read, the name goes."""
    statement = code.statement(ratio.node)
    names = Names(code, code.function(ratio.node))
    gone: list[ast.stmt] = []
    inside = {id(part) for part in ast.walk(node)}
    while (
        isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and len(statement.targets) == 1
    ):
        name = statement.targets[0].id
        bindings = names.bindings(name)
        if (
            any(id(read) not in inside for read in names.reads(name))
            or id(statement.value) in inside
            or len(bindings) != 1
        ):
            return
        gone.append(statement)
        yield code.remove(statement)
        inside |= {id(part) for part in ast.walk(statement)}
        return
