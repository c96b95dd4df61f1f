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
    home = code.at(formula.home)
    if isinstance(statement, ast.Assign) and statement.value is node and isinstance(statement.targets[0], ast.Name):
        names = Names(code, code.function(node))
        inside = {id(part) for part in ast.walk(home)} if home is not None else set()
        reads = list(names.reads(statement.targets[0].id))
        if all(id(read) in inside for read in reads):
            yield code.replace(node, f"({_on_one_line(code, node)}){_CLAMP}")
            return
        yield from _named(code, statement.targets[0], [read for read in reads if id(read) in inside])
        return
    same = [each for each in ast.walk(statement) if isinstance(each, ast.expr) and ast.dump(each) == ast.dump(node)]
    if len(same) == 1:
        raise CannotMendError("the log-ratio is written in more than one way in the formula")
    yield from _named(code, node, same)


def _named(code: Code, node: ast.expr, places: list[ast.expr]) -> Iterator[Edit]:
    """The clamped log-ratio under a name of its own, above the statement of the formula, and in the formula that name."""
    if not places:
        raise CannotMendError("the log-ratio is clamped in one place for several formulas")
    names = Names(code, code.function(places[0]))
    name = next((name for name in _NAMES if names.is_free(name)), None)
    if name is None:
        raise CannotMendError("no name is free for the clamped log-ratio")
    text = _on_one_line(code, node)
    operand = text if isinstance(node, ast.Name) else f"({text})"
    yield code.insert_before(code.statement(places[0]), [f"{name} = {operand}{_CLAMP}"])
    for each in places:
        yield code.replace_enclosed(each, name)


def _on_one_line(code: Code, node: ast.expr) -> str:
    return " ".join(code.text(node).split()) if "#" not in code.text(node) else ast.unparse(node)
