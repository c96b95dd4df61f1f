"""KLA302: the operands of the log-ratio change places, where they are written or where they are handed to a helper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code import names as words
from klaudit.code.result import Formula
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit

_REVEALS = frozenset({"KLA101", "KLA102", "KLA305"})


def turn_ratio(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    ways = [*_swapped_arguments(code, formula), *_swapped_operands(code, formula)]
    if not ways:
        raise CannotMendError("the two log-probabilities do not stand in one difference that could be turned round")
    for edits in ways:
        yield Proposal(
            target="the right direction",
            title="turn the log-ratio round, to log pi_ref - log pi",
            edits=edits,
            promise=Promise(formula.placement, reveals=_REVEALS),
        )


def _swapped_arguments(code: Code, formula: Formula) -> Iterator[tuple[Edit, ...]]:
    """First choice where there is a helper: others may call it with the right order."""
    call = code.at(formula.call[0] if formula.call is not None else formula.span)
    if not isinstance(call, ast.Call):
        return
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    given = [each for each in values if words.is_log_probability(code.text(each))]
    if len(given) == 2:
        one, other = given
        yield code.replace(one, code.text(other)), code.replace(other, code.text(one))


def _swapped_operands(code: Code, formula: Formula) -> Iterator[tuple[Edit, ...]]:
    """Every difference of the same two expressions in the function, where the formula writes it more than once."""
    node = code.at(formula.difference)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return
    span = code.at(formula.span)
    if _is_read_elsewhere(code, node, span):
        return
    same = [each for each in ast.walk(code.statement(span or node)) if ast.dump(each) == ast.dump(node)]
    same = same if any(each is node for each in same) else [node]
    edits: list[Edit] = []
    for each in same:
        assert isinstance(each, ast.BinOp)
        left, right = code.text(each.left), code.text(each.right)
        is_sum = isinstance(each.left, ast.BinOp) and isinstance(each.left.op, ast.Add | ast.Sub)
        edits += [code.replace(each.left, right), code.replace(each.right, f"({left})" if is_sum else left)]
    yield tuple(edits)


def _is_read_elsewhere(code: Code, node: ast.expr, formula: ast.AST | None) -> bool:
    """The difference has a name that something beside the formula reads."""
    statement = code.statement(node)
    if not isinstance(statement, ast.Assign) or statement.value is not node or formula is None:
        return False
    names, inside = Names(code, code.function(node)), {id(part) for part in ast.walk(formula)}
    targets = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return any(id(read) not in inside for name in targets for read in names.reads(name))
