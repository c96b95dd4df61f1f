"""What objects hold: methods, what `__init__` assigns, constants of a class, and the parameters of functions."""

from __future__ import annotations

import ast

from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.callers import Passed, passed
from klaudit.code.graph import Node
from klaudit.code.interpreter.machine import Frame, Machine, is_model_made_here
from klaudit.code.modules import ClassInfo, FunctionInfo
from klaudit.code.roles import REFERENCE
from klaudit.code.values import Closure, Instance, Literal, Mapping, Operation, Path, Value


class Members(Machine):
    """Looks up what belongs to a class or a function."""

    def evaluate(self, syntax: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def attribute_of_self(self, owner: ClassInfo, name: str, receiver: Path) -> Value | None:
        """A method, or what `__init__` assigned where that is a number, a text or an object whose class is read."""
        if method := self.program.method(owner, name):
            if is_property(method):
                return None
            if is_left_to_subclasses(method):
                method = self._only_override(owner, name) or method
            return Closure(method, receiver=None if is_static(method) else receiver)
        written = self.written_in_init(owner, name)
        if written is None:
            return self.class_attribute(owner, name)
        value, init = written
        simple = isinstance(
            value,
            ast.Constant | ast.Call | ast.Name | ast.Attribute | ast.UnaryOp | ast.Subscript | ast.IfExp | ast.Lambda,
        )
        if not simple:
            return None
        frame = Frame(init.module, init, self.parameters_as_called(init, receiver), receiver=None)
        result = self.evaluate(value, frame)
        if isinstance(result, Path):  # the attribute's own path says more to the reader than what it was copied from
            kept = Path(
                f"{receiver.text}.{name}",
                result.name if names.is_log_probability(result.name) else name,
                default=result.default,
            )
            if is_model_made_here(name, result) and (made := self.model_kept(name, result)).model == REFERENCE:
                kept = replace(kept, model=made.model, reason=made.reason)
            self.note_default(kept)
            return kept
        if isinstance(result, Node) and result.is_scalar:
            return self.graph.scalar(f"{receiver.text}.{name}", result.number, result.site)
        return result if isinstance(result, Literal | Instance | Closure | Operation | Mapping) else None

    def _only_override(self, owner: ClassInfo, name: str) -> FunctionInfo | None:
        """The method that the one subclass in the file defines, where the class itself leaves it open."""
        subclasses = [
            each for each in owner.module.classes.values() if owner.name in each.bases and name in each.methods
        ]
        return subclasses[0].methods[name] if len(subclasses) == 1 else None

    def written_in_init(self, owner: ClassInfo, name: str) -> tuple[ast.expr, FunctionInfo] | None:
        """What `__init__` of a class or of its nearest base that has one assigns to an attribute."""
        init = self.program.method(owner, "__init__")
        if init is None or init.owner is None or name not in init.owner.set_in_init:
            return None
        return init.owner.set_in_init[name], init

    def class_attribute(self, owner: ClassInfo, name: str) -> Value | None:
        """A constant in the body of the class."""
        for statement in owner.syntax.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(
                statement.value, ast.Constant | ast.UnaryOp
            ):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                if isinstance(target, ast.Name) and target.id == name:
                    return self.evaluate(statement.value, Frame(owner.module, None, {}))
        return None

    def parameters(self, info: FunctionInfo, receiver: Value | None) -> dict[str, Value]:
        """Parameters as objects from outside, with their defaults noted; `self` is the receiver."""
        arguments = info.syntax.args
        bound: dict[str, Value] = {}
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(
            arguments.defaults
        )
        for parameter, default in [
            *zip(positional, defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]:
            value: Value | None = None
            if isinstance(default, ast.Constant | ast.UnaryOp):
                value = self.evaluate(default, Frame(info.module, None, {}))
            bound[parameter.arg] = Path(parameter.arg, parameter.arg, default=value)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                bound[extra.arg] = Path(extra.arg, extra.arg)
        if info.owner is not None and positional and receiver is not None:
            bound[positional[0].arg] = receiver
        return bound

    def parameters_as_called(self, info: FunctionInfo, receiver: Value | None) -> dict[str, Value]:
        """Parameters of a function that is run without a call: callers in its file beat the defaults."""
        bound = self.parameters(info, receiver)
        for name, value in bound.items():
            if isinstance(value, Path) and value.default is not None and value.default != Literal(None):
                bound[name] = replace(value, default=self._as_passed(value, name, info))
        return bound

    def _as_passed(self, parameter: Path, name: str, info: FunctionInfo) -> Value | None:
        """What callers pass where they agree on it; where that is open, no text and no number that says that it is off.

        Nor is it off where nobody is seen to make the object: somebody will, with what a configuration says.
        """
        given = passed(self.program, info, name)
        default = parameter.default
        if isinstance(given, ast.expr):
            value = self.evaluate(given, Frame(info.module, None, {}))
            return value.default if isinstance(value, Path) else value
        is_off = isinstance(default, Node) and not default.number
        if given is Passed.DEFAULT or (given is Passed.UNSEEN and not (is_off and info.name == "__init__")):
            return default
        if isinstance(default, Node):
            return self.graph.scalar(parameter.text) if is_off else default
        return None


def decorators(info: FunctionInfo) -> list[ast.expr]:
    return [] if isinstance(info.syntax, ast.Lambda) else info.syntax.decorator_list


def is_property(info: FunctionInfo) -> bool:
    """Whether it is read like an attribute."""
    return any(
        isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith("property")
        for node in decorators(info)
    )


def is_static(info: FunctionInfo) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "staticmethod" for node in decorators(info))


def is_left_to_subclasses(info: FunctionInfo) -> bool:
    """Its body does nothing: `raise NotImplementedError`, `...`, `pass`."""
    if isinstance(info.syntax, ast.Lambda):
        return False
    does_nothing = (ast.Raise, ast.Pass)
    return all(
        isinstance(statement, does_nothing)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in info.syntax.body
    )
