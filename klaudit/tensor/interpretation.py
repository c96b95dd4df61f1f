"""A function interpreted from its source by the evaluator of the code analysis: value and slope at chosen points, nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from klaudit.code.conditions import Constant
from klaudit.code.evaluation.dual import NotEvaluableError, Tokens, evaluate, taken_parts
from klaudit.code.graph import Node, Op, TooManyNodesError
from klaudit.code.interpreter import BudgetError, Interpreter
from klaudit.code.modules import ClassInfo, FunctionInfo, Program
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.model import Placement
from klaudit.readers.source import Source, UnreadableError
from klaudit.tensor.errors import TensorError
from klaudit.tensor.fingerprint_type import Fingerprint
from klaudit.tensor.user_function import Target
from klaudit.theory.identify import identify
from klaudit.theory.matching import Point, Sample

_INSTEAD = "--run imports and calls it"


@dataclass(frozen=True, slots=True)
class InterpretedProbe:
    """The returned value of a function, as a graph, with its settings decided."""

    root: Node
    settings: dict[str, Constant]

    def __call__(self, points: Sequence[Point]) -> list[Sample]:
        tokens = Tokens(
            tuple(point.log_pi for point in points),
            tuple(point.d for point in points),
            tuple(point.log_rho for point in points),
        )
        try:
            found = evaluate(self.root, tokens, self.settings)
        except NotEvaluableError as error:
            raise TensorError(f"cannot be interpreted: {error} has no value here; {_INSTEAD}") from None
        return [Sample(value, slope) for value, slope in zip(found.values, found.slopes, strict=True)]

    @property
    def parts(self) -> frozenset[Node]:
        return taken_parts(self.root, self.settings) or frozenset({self.root})

    @property
    def roles(self) -> int:
        """Whose log-probabilities it really depends on, under its settings."""
        return _roles(self.parts)


def interpret(target: Target, placement: Placement) -> Fingerprint:
    """Fingerprint a function without running any of its code.

    Parameters of the function that `target` gives no value have their defaults.  Raises TensorError where the source cannot be read, or
    holds what the evaluator does not know.
    """
    probe = _probe(target)
    if not probe.roles & REFERENCE:
        given = (
            f" with {', '.join(f'{name}={value}' for name, value in target.arguments.items())}"
            if target.arguments
            else ""
        )
        raise TensorError(
            f"{target.function} returns nothing{given} that depends on the reference's log-probabilities, as far as its source tells "
            f"(it may raise, or its parameters' names say nothing: logp, ref_logp); {_INSTEAD}"
        )
    notes = _notes(probe)
    try:
        identity = identify(probe, placement, takes_old=bool(probe.roles & OLD and probe.roles & POLICY))
    except ValueError as error:
        raise TensorError(str(error)) from None
    return Fingerprint.of(identity, placement, notes)


def _probe(target: Target) -> InterpretedProbe:
    folder = target.path.resolve().parent
    try:
        source = Source(target.path.name, target.path.read_bytes())
        program = Program(source, lambda path: _neighbour(folder, path))
        info = _function(program, target.function)
        _check_arguments(info, target)
        interpreter = Interpreter(program)
        frame = interpreter.run_root(info)
    except OSError as error:
        raise TensorError(f"cannot read {target.path}: {error.strerror}") from None
    except UnreadableError as error:
        raise TensorError(f"{target.path.name}:{error.line or 1}: {error}") from None
    except (BudgetError, TooManyNodesError, RecursionError) as error:
        raise TensorError(
            f"{target.function} cannot be interpreted: {error or 'nested too deeply'}; {_INSTEAD}"
        ) from None
    returned = interpreter.alternatives([(condition, value) for condition, value, _ in frame.returns])
    return InterpretedProbe(interpreter.as_node(returned), {**interpreter.defaults, **_constants(target)})


def _function(program: Program, dotted: str) -> FunctionInfo:
    """The function of that name, at the top level or a method of a class there."""
    first, _, rest = dotted.partition(".")
    found = program.look_up(program.main, first)
    if isinstance(found, ClassInfo) and rest in found.methods:
        return found.methods[rest]
    if isinstance(found, FunctionInfo) and not rest:
        return found
    raise TensorError(f"{program.main.source.path} has no function {dotted}")


def _check_arguments(info: FunctionInfo, target: Target) -> None:
    arguments = info.syntax.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if unknown := sorted(set(target.arguments) - set(names)):
        raise TensorError(f"no parameter {unknown[0]}; there are {', '.join(names)}")


def _neighbour(folder: Path, path: str) -> Source | None:
    """A file that the source imports, if it stands below the source's own folder."""
    parts = PurePosixPath(path).parts
    if ".." in parts:
        return None
    file = folder.joinpath(*parts)
    return Source(path, file.read_bytes()) if file.is_file() and file.resolve().is_relative_to(folder) else None


def _notes(probe: InterpretedProbe) -> tuple[str, ...]:
    reductions = {node.text for node in probe.parts if node.op is Op.REDUCE and not node.vocabulary}
    if not reductions:
        return ()
    return (f"{' and '.join(sorted(reductions))} over tokens taken as that of a single token",)


def _roles(parts: frozenset[Node]) -> int:
    roles = 0
    for node in parts:
        if node.op is Op.ATOM:
            roles |= node.roles
    return roles


def _constants(target: Target) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    for name, value in target.arguments.items():
        if value is not None and not isinstance(value, bool | int | float | str):
            raise TensorError(
                f"--argument {name}: only a number, a text, True, False or None can be interpreted; {_INSTEAD}"
            )
        found[name] = value
    return found
