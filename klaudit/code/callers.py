"""What the callers of a function in its own file pass for a parameter that has a default."""

from __future__ import annotations

import ast
from enum import Enum, auto

from klaudit.code.modules import FunctionInfo, Program
from klaudit.code.options import default_of

MAX_CALLS = 50  # of one function that are looked at


class Passed(Enum):
    UNSEEN = auto()  # there are no callers
    DEFAULT = auto()  # by none of them
    OPEN = auto()  # something that is not known here, or not always the same


def passed(program: Program, info: FunctionInfo, parameter: str) -> ast.expr | Passed:
    """The number, text or truth value that every caller passes."""
    name = _called_as(info)
    calls = program.calls(info.module, name)[:MAX_CALLS] if name is not None else []
    if name is not None and _may_be_called_otherwise(info, name, calls):
        return Passed.OPEN
    given = [_argument(call, info, parameter) for call in calls]
    first = next((value for value in given if value is not None), None)
    if first is None:
        return Passed.DEFAULT if calls else Passed.UNSEEN
    same = all(value is not None and ast.dump(value) == ast.dump(first) for value in given)
    return first if same and (_is_constant(first) or _is_option(program, info, first)) else Passed.OPEN


def _may_be_called_otherwise(info: FunctionInfo, name: str, calls: list[ast.Call]) -> bool:
    """The calls that spell its name may be another's, or there are more: it is handed on, or a subclass makes its objects."""
    module = info.module
    if info.owner is not None and info.name != "__init__":
        others = [each for each in module.classes.values() if each is not info.owner and name in each.methods]
        if calls and (others or name in module.functions):
            return True
    if (
        info.owner is not None
        and info.name == "__init__"
        and any(name in each.bases for each in module.classes.values())
    ):
        return True
    called = {id(call.func) for call in calls}
    return bool(calls) and any(_reads(node, name) and id(node) not in called for node in ast.walk(module.syntax))


def _reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub | ast.UAdd):
        value = value.operand
    return isinstance(value, ast.Constant)


def _is_option(program: Program, info: FunctionInfo, value: ast.expr) -> bool:
    """An option of the command line that has a number by default."""
    if not isinstance(value, ast.Attribute) or not isinstance(value.value, ast.Name):
        return False
    return default_of(program, info.module, None, value.value.id, value.attr) is not None


def _called_as(info: FunctionInfo) -> str | None:
    """The name that a call spells: a class for what makes its objects."""
    if info.name == "__init__" and info.owner is not None:
        return info.owner.name
    return None if info.name.startswith("__") else info.name


def _argument(call: ast.Call, info: FunctionInfo, parameter: str) -> ast.expr | None:
    """What a call passes for a parameter; None where it leaves it to the default.  A call that hands on others passes itself."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    arguments = info.syntax.args
    positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if info.owner is not None and positional and positional[0] in ("self", "cls"):
        positional = positional[1:]
    at = positional.index(parameter) if parameter in positional else len(call.args)
    if any(isinstance(argument, ast.Starred) for argument in call.args[: at + 1]):
        return call
    if at < len(call.args):
        return call.args[at]
    return call if any(keyword.arg is None for keyword in call.keywords) else None
