"""KLA304: the penalty of a reward is detached where it is deducted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.joint import Joint, leads_to, steps
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit


def detach(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    joined = code.at(formula.joined)
    if joined is None:
        raise CannotMendError("the penalty does not join the reward in a sum of this file")
    names = Names(code, code.function(joined))
    joint = Joint.of(code, names, formula)
    is_formula = leads_to(code, formula)
    operand = joint.penalty

    def is_value(node: ast.AST) -> bool:
        """A name ends the way: it is detached here, and keeps its gradient where else it is read."""
        return is_formula(node) or (isinstance(node, ast.Name) and names.reaches(node, joint.statement, is_formula))

    def holds(expression: ast.expr, at: ast.stmt) -> bool:
        return names.reaches(expression, at, is_formula)

    core = steps(names, operand, joint.statement, holds, is_value).core
    yield Proposal(
        target="a penalty without gradient",
        title="detach the penalty where it is deducted from the reward",
        edits=tuple(_detached(code, core)),
        promise=Promise("reward"),
    )


def _detached(code: Code, node: ast.expr) -> Iterator[Edit]:
    """`.detach()` behind a value, and parentheses around it where it has none."""
    start, end = code.extent(node)
    after = code.data[end:]
    is_enclosed = code.data[:start].rstrip()[-1:] == b"(" and after.lstrip()[:1] == b")"
    if isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
        yield code.edit(end, end, ".detach()")
    elif is_enclosed and not isinstance(code.parents[node], ast.Call):
        closing = len(code.data) - len(after.lstrip()) + 1
        yield code.edit(closing, closing, ".detach()")
    else:
        yield code.edit(start, start, "(")
        yield code.edit(end, end, ").detach()")
