"""The log-ratio of a formula as the code around it can write it: log pi and log pi_ref, over calls of helpers."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from klaudit.code import names as words
from klaudit.code.result import Formula
from klaudit.code.roles import REFERENCE
from klaudit.fixes.codemods.proposal import CannotMendError
from klaudit.fixes.codemods.text import Code

_SHED = ("detach", "float")


@dataclass(frozen=True, slots=True)
class LogRatio:
    """Two expressions, and the node in whose place they can be read: the difference itself, or the call that is given both.

    Which of them is the policy's is a guess by names; what it leads to is proven.
    """

    policy: ast.expr
    reference: ast.expr
    node: ast.expr
    is_masked: bool = False  # the helper is given more than the two, and may leave tokens out
    cast: str = ""  # `.float()` where both are cast so before they are set against each other

    def turned(self) -> LogRatio:
        return replace(self, policy=self.reference, reference=self.policy)

    def written(self, code: Code) -> str:
        """`log pi - log pi_ref`."""
        return f"{code.operand(self.policy)}{self.cast} - {code.operand(self.reference)}{self.cast}"

    def is_same(self, node: ast.AST) -> bool:
        return isinstance(node, ast.expr) and ast.dump(node) == ast.dump(self.policy)


def log_ratio(code: Code, formula: Formula) -> LogRatio:
    """Raises CannotMendError where the two are not to be seen in the file."""
    call = code.at(formula.call[0]) if formula.call is not None else None
    given = _difference(code, formula)
    if given is not None:
        node, one, other = given
        joined = code.at(formula.joined)
        if joined is None or code.function(node) is code.function(joined):
            return _ordered(one, other, node)
        if isinstance(call, ast.Call):
            helper = code.function(node)
            bound = _arguments(call, helper)
            passed = [bound.get(each.id) for each in map(_plain, (one, other)) if isinstance(each, ast.Name)]
            match passed:
                case [ast.expr() as first, ast.expr() as second]:
                    made = _ordered(first, second, call, is_masked=len(bound) > 2)
                    return replace(made, cast=_cast(one) if _cast(one) == _cast(other) else "")
        raise CannotMendError("the helper does not get log pi and log pi_ref as they are")
    where = call if isinstance(call, ast.Call) else code.at(formula.span)
    if isinstance(where, ast.Call):
        found = [each for each in _values(where) if words.is_log_probability(_last_name(each))]
        if len(found) == 2:
            return _ordered(found[0], found[1], where, is_masked=len(_values(where)) > 2)
    raise CannotMendError("log pi and log pi_ref are not set against each other where the code can be changed")


def _difference(code: Code, formula: Formula) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    node = code.at(formula.difference)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return node, node.left, node.right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("sub", "subtract"):
        operands = [*([] if len(node.args) == 2 else [node.func.value]), *node.args]
        if len(operands) == 2 and not node.keywords:
            return node, operands[0], operands[1]
    return None


def _ordered(one: ast.expr, other: ast.expr, node: ast.expr, *, is_masked: bool = False) -> LogRatio:
    cast = _cast(one) if _cast(one) == _cast(other) else ""
    one, other = _plain(one), _plain(other)
    if words.holder(_last_name(one)) == REFERENCE and words.holder(_last_name(other)) != REFERENCE:
        one, other = other, one
    return LogRatio(one, other, node, is_masked, cast)


def _plain(node: ast.expr) -> ast.expr:
    """Without `.detach()` (the whole will be detached, or the reference is anyway) and `.float()`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SHED
        and not node.args
    ):
        node = node.func.value
    return node


def _cast(node: ast.expr) -> str:
    """`.float()` where that is part of an operand."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SHED
        and not node.args
    ):
        if node.func.attr == "float":
            return ".float()"
        node = node.func.value
    return ""


def _last_name(node: ast.expr) -> str:
    """The identifier that says most about an expression: the name, attribute or key."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Subscript(value=inner):
            return _last_name(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name
        case ast.Call(func=ast.Attribute(value=inner)):
            return _last_name(inner)
    return ""


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _arguments(call: ast.Call, helper: ast.AST) -> dict[str, ast.expr]:
    """What each parameter of the helper is given; `self` is not counted where the call is that of a method."""
    if not isinstance(helper, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return {}
    parameters = [each.arg for each in (*helper.args.posonlyargs, *helper.args.args)]
    if parameters[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
        parameters = parameters[1:]
    given = dict(zip(parameters, call.args, strict=False))
    given.update((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None)
    return {} if any(isinstance(each, ast.Starred) for each in call.args) else given
