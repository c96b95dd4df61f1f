"""KLA305: the log-ratio is clamped on both sides before it is exponentiated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit

_CLAMP = ".clamp(min=-20.0, max=20.0)"
_NAMES = ("log_ratio", "clamped_log_ratio", "kl_log_ratio")
_NOTE = "outside of 20 nats the penalty has no gradient; exp(20) is far from the largest float32"


def clamp_before_exp(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    if formula.home.path != formula.span.path:
        raise CannotMendError(
            f"the exponential stands in {formula.home.path}:{formula.home.line}, which others may use"
        )
    node = code.at(formula.difference)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        raise CannotMendError("the log-ratio is no difference of its own that could be clamped")
    if b"torch" not in code.data:
        raise CannotMendError("how this library clamps is not known")
    yield Proposal(
        target="a bounded exponential",
        title="clamp the log-ratio on both sides before exp",
        edits=tuple(_edits(code, formula, node)),
        promise=Promise(formula.placement, formula.what.estimator),
        notes=(_NOTE,),
    )


def _edits(code: Code, formula: Formula, node: ast.BinOp) -> Iterator[Edit]:
    statement = code.statement(node)
    if code.is_in_inner_scope(node):
        raise CannotMendError("the formula stands in a lambda or comprehension, above which nothing of it can be said")
    if isinstance(statement, ast.Assign) and statement.value is node:
        text = " ".join(code.text(node).split())
        yield code.replace(node, f"({text}){_CLAMP}")
        return
    same = [each for each in ast.walk(statement) if ast.dump(each) == ast.dump(node)]
    if len(same) == 1:
        raise CannotMendError("the log-ratio is written in more than one way in the formula")
    names = Names(code, code.function(node))
    name = next((name for name in _NAMES if names.is_free(name)), None)
    if name is None or isinstance(names.function, ast.Lambda):
        raise CannotMendError("no name is free for the clamped log-ratio")
    yield code.insert_before(statement, [f"{name} = ({' '.join(code.text(node).split())}){_CLAMP}"])
    for each in same:
        assert isinstance(each, ast.BinOp)
        yield code.replace_enclosed(each, name)
