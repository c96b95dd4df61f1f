"""Defaults of settings that a file declares itself: options of an argparse parser, fields of the class that a parameter is annotated with.

Only those that switch something on count: a setting that is 0 unless somebody gives it says nothing of what it is when he does.
"""

from __future__ import annotations

import ast

from klaudit.code.modules import ClassInfo, FunctionInfo, Module, Program

_PARSES = ("parse_args", "parse_known_args", "parse_args_into_dataclasses")


def default_of(program: Program, module: Module, function: FunctionInfo | None, owner: str, name: str) -> float | None:
    """The number that `owner.name` is where nobody gives another: `args.kl_coef`, or `config.beta` of an annotated parameter."""
    found = _of_field(program, function, owner, name) if function is not None else None
    if found is None and "." not in owner and _is_parsed(program, module, owner):
        found = _of_option(program, module, name)
    number = _number(found) if found is not None else None
    return number or None


def _is_parsed(program: Program, module: Module, owner: str) -> bool:
    """The name is what a parser gives, somewhere in the file."""
    calls = [call for parse in _PARSES for call in program.calls(module, parse)]
    if not calls:
        return False
    return any(
        isinstance(node, ast.Assign) and node.value in calls and owner in _bound(node.targets)
        for node in ast.walk(module.syntax)
    )


def _bound(targets: list[ast.expr]) -> set[str]:
    """Of several that are bound at once only the first, which holds the options."""
    firsts = [target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target for target in targets]
    return {first.id for first in firsts if isinstance(first, ast.Name)}


def _of_option(program: Program, module: Module, name: str) -> ast.expr | None:
    flags = {f"--{name}", f"--{name.replace('_', '-')}"}
    found = [
        call
        for call in program.calls(module, "add_argument")
        if any(isinstance(argument, ast.Constant) and argument.value in flags for argument in call.args)
        or any(
            each.arg == "dest" and isinstance(each.value, ast.Constant) and each.value.value == name
            for each in call.keywords
        )
    ]
    if len(found) != 1:
        return None
    return next((keyword.value for keyword in found[0].keywords if keyword.arg == "default"), None)


def _of_field(program: Program, function: FunctionInfo, owner: str, name: str) -> ast.expr | None:
    arguments = function.syntax.args
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if parameter.arg == owner and parameter.annotation is not None:
            info = program.class_named(function.module, _class_name(parameter.annotation))
            return _field(program, info, name) if info is not None else None
    return None


def _class_name(annotation: ast.expr) -> str:
    """Of `GRPOConfig`, `"GRPOConfig"`, `GRPOConfig | None` and `Optional[GRPOConfig]`."""
    if isinstance(annotation, ast.BinOp):
        return _class_name(annotation.left)
    if isinstance(annotation, ast.Subscript):
        return _class_name(annotation.slice)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation)


def _field(program: Program, info: ClassInfo, name: str) -> ast.expr | None:
    for statement in info.syntax.body:
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.target.id == name
        ):
            value = statement.value
            if isinstance(value, ast.Call):
                value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
            return value
    return None


def _number(value: ast.expr) -> float | None:
    sign = 1.0
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        sign, value = -1.0, value.operand
    is_number = (
        isinstance(value, ast.Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool)
    )
    return sign * float(value.value) if is_number and isinstance(value, ast.Constant) else None  # type: ignore[arg-type]
