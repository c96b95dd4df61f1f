"""KLA303: what keeps the gradient from the penalty is taken away, where that is one thing in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.joint import leads_to
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.text import Code
from klaudit.model import Edit

_REVEALS = frozenset({"KLA101", "KLA103", "KLA105", "KLA106", "KLA305"})
_CUTS = frozenset({"detach", "item"})


def attach(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    joined, node = code.at(formula.joined), code.at(formula.span)
    if joined is None or node is None:
        raise CannotMendError("the penalty does not join the loss in this file")
    if formula.home.path != formula.span.path or code.function(joined) is not code.function(node):
        place = f"{formula.home.path}:{formula.home.line}"
        raise CannotMendError(f"the gradient may be lost in the function at {place}, which others may call")
    ways = [*_without_cut(code, formula), *_out_of_no_grad(code, formula)]
    if not ways:
        raise CannotMendError("the gradient is not lost in one `.detach()` or `no_grad()` that could be taken away")
    for title, edits in ways:
        yield Proposal("a penalty with gradient", title, edits, Promise("loss", reveals=_REVEALS))


def _without_cut(code: Code, formula: Formula) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """Each `.detach()` on the way from log pi to the sum, alone."""
    joined = code.at(formula.joined)
    assert joined is not None
    function = code.function(joined)
    names = Names(code, function)
    is_formula = leads_to(code, formula)
    difference = code.at(formula.difference)

    def is_sum(node: ast.AST) -> bool:
        """What comes behind the sum is the loss as it is reported."""
        return node is joined

    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]) if name in _CUTS:
                is_inside = isinstance(difference, ast.BinOp) and node in (difference.left, difference.right)
                is_on_the_way = names.reaches(value, code.statement(node), is_formula)
                if is_inside or (is_on_the_way and not names.reaches(value, code.statement(node), is_sum)):
                    end = code.extent(value)[1]
                    yield (
                        f"take `.{name}()` away from the penalty",
                        (code.edit(_behind(code, end), code.extent(node)[1], ""),),
                    )


def _behind(code: Code, end: int) -> int:
    """Behind the parentheses that close after an expression, before the dot of the method."""
    dot = code.data.find(b".", end)
    return end + len(code.data[end:dot].rstrip())


def _out_of_no_grad(code: Code, formula: Formula) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """The last statements of a `with torch.no_grad():`, from the formula on, come out of it; those before it stay inside."""
    node = code.at(formula.span)
    assert node is not None
    statement = code.statement(node)
    block = code.parents[statement]
    if not isinstance(block, ast.With) or not _is_no_grad(block) or len(block.items) != 1:
        return
    at = block.body.index(statement)
    moved = block.body[at:]
    start = code.body_start(block) if at == 0 else code.lines(statement)[0]
    end = code.lines(moved[-1])[1]
    outer, inner = code.indent(block), code.indent(statement)
    text = code.data[start:end].decode()
    lines = text.splitlines(keepends=True)
    if any(line.strip() and not line.startswith(inner) for line in lines) or '"""' in text or "'''" in text:
        return
    dedented = "".join(outer + line[len(inner) :] if line.strip() else line for line in lines)
    first = code.lines(block)[0] if at == 0 else start
    yield "compute the penalty outside of no_grad", (code.edit(first, end, dedented),)


def _is_no_grad(block: ast.With) -> bool:
    call = block.items[0].context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in ("no_grad", "inference_mode")
