"""Configurations that switch the framework's own KL off and go to a class of the same file that has one: one set-up, not two.

The class is made once, with numbers for the coefficients of its penalty, and is given the configuration.  Where any of that does not
hold, both stay what they are by themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from klaudit.code.modules import Module, Program
from klaudit.code.result import CodeResult, Formula
from klaudit.code.setups import by_symbol, setup_of
from klaudit.model import Evidence, Setup, Span
from klaudit.readers.source import Source

_SELF = "self."


class _Number(Struct, frozen=True):
    """A number that the call gives for a parameter of the constructor."""

    value: float
    parameter: str
    span: Span


def with_own_penalties(configured: Iterable[Setup], source: Source, result: CodeResult) -> tuple[Setup, ...]:
    """The set-ups of a file: those of its configurations, and those of its formulas in `result`, joined where they are one."""
    configured = list(configured)
    groups = by_symbol(result)
    own = [setup_of(symbol, group) for symbol, group in groups.items()]
    silent = {
        setup.span: at
        for at, setup in enumerate(configured)
        if setup.kind == "code" and setup.verdict == "inactive" and all(term.active is False for term in setup.terms)
    }
    if not silent or not any("." in symbol for symbol in groups):
        return (*configured, *own)
    module = Program(source, lambda path: None).main
    for name in dict.fromkeys(symbol.partition(".")[0] for symbol in groups):
        mine = {symbol: group for symbol, group in groups.items() if symbol.partition(".")[0] == name}
        call = _only_call(module, name)
        if call is None or len(mine) != 1:
            continue
        ((symbol, group),) = mine.items()
        given = _configuration(module, call, silent)
        numbered = _numbered(group, module, name, call)
        if given is not None and numbered is not None:
            formulas, numbers = numbered
            configured[silent[given]] = _joined(configured[silent[given]], setup_of(symbol, formulas), numbers)
            own = [setup for setup in own if setup.symbol != symbol]
    return (*configured, *own)


def _joined(configured: Setup, own: Setup, numbers: Iterable[_Number]) -> Setup:
    told = tuple(
        Evidence(number.parameter, number.value, "code", number.span.path, number.span.line, number.span)
        for number in numbers
    )
    terms = tuple(replace(term, evidence=(*told, *term.evidence)) for term in own.terms)
    return replace(
        configured,
        terms=(*configured.terms, *terms),
        score_weight=own.score_weight,
        verdict=own.verdict,
    )


# --- which configuration ---------------------------------------------------------------------------------------------------------------


def _only_call(module: Module, name: str) -> ast.Call | None:
    """The one call of a class that is defined once, and used for nothing else."""
    mentions = [node for node in ast.walk(module.syntax) if isinstance(node, ast.Name) and node.id == name]
    calls = [
        node
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
    return calls[0] if name in module.classes and len(calls) == len(mentions) == 1 else None


def _configuration(module: Module, call: ast.Call, silent: Iterable[Span]) -> Span | None:
    """Which of the configurations the call is given: made in its arguments, or bound once to a name that stands there."""
    starts = {span.start: span for span in silent}
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    found = []
    for argument in arguments:
        made = _bound_once(module, argument.id) if isinstance(argument, ast.Name) else argument
        if isinstance(made, ast.Call) and (span := starts.get(module.span(made).start)) is not None:
            found.append(span)
    return found[0] if len(found) == 1 else None


def _bound_once(module: Module, name: str) -> ast.expr | None:
    stored = [
        node
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store | ast.Del)
    ]
    values = [
        node.value
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return values[0] if len(stored) == len(values) == 1 else None


# --- which coefficient -----------------------------------------------------------------------------------------------------------------


def _numbered(
    group: list[Formula], module: Module, name: str, call: ast.Call
) -> tuple[list[Formula], list[_Number]] | None:
    """The formulas with the numbers that the call gives for their coefficients; None where one of them has no such number."""
    numbers = dict(_numbers(module, name, call))
    used: dict[str, _Number] = {}
    formulas = []
    for formula in group:
        knobs = []
        for knob in formula.knobs:
            number = numbers.get(knob.name.removeprefix(_SELF)) if knob.name.startswith(_SELF) else None
            if number is None:
                return None
            used[number.parameter] = number
            knobs.append(replace(knob, number=number.value))
        formulas.append(replace(formula, knobs=tuple(knobs)))
    return formulas, list(used.values())


def _numbers(module: Module, name: str, call: ast.Call) -> Iterator[tuple[str, _Number]]:
    """By attribute: what the constructor puts there as it is given, and the call gives by name as a number."""
    info = module.classes[name]
    init = info.methods.get("__init__")
    if init is None:
        return
    arguments = init.syntax.args
    parameters = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    rebound = {
        node.id for node in ast.walk(init.syntax) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    for attribute, value in info.set_in_init.items():
        if not isinstance(value, ast.Name) or value.id not in parameters - rebound or value.id not in given:
            continue
        number = _literal(given[value.id])
        if number is not None and _set_once(info.syntax, attribute):
            yield attribute, _Number(number, value.id, module.span(given[value.id]))


def _set_once(definition: ast.ClassDef, attribute: str) -> bool:
    stores = (
        node
        for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and node.attr == attribute and not isinstance(node.ctx, ast.Load)
    )
    return sum(1 for _ in stores) == 1


def _literal(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
