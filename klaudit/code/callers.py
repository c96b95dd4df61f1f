"""What the callers of a function in its own file pass for a parameter that has a default."""

from __future__ import annotations

import ast
from enum import Enum, auto

from klaudit.code.modules import FunctionInfo, Program

MAX_CALLS = 50  # of one function that are looked at


class Passed(Enum):
    DEFAULT = auto()  # by no caller that is seen
    OPEN = auto()  # something that is not known here, or not always the same


def passed(program: Program, info: FunctionInfo, parameter: str) -> ast.expr | Passed:
    """The number, text or truth value that every caller passes."""
    name = _called_as(info)
    calls = program.calls(info.module, name)[:MAX_CALLS] if name is not None else []
    given = [_argument(call, info, parameter) for call in calls]
    first = next((value for value in given if value is not None), None)
    if first is None:
        return Passed.DEFAULT
    same = all(value is not None and ast.dump(value) == ast.dump(first) for value in given)
    return first if same and _is_constant(first) else Passed.OPEN


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub | ast.UAdd):
        value = value.operand
    return isinstance(value, ast.Constant)


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
