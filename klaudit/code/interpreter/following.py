"""Functions of the tree that a call leads to: run with what they are given, where that could concern a penalty."""

from __future__ import annotations

import ast

from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.graph import Node
from klaudit.code.interpreter.machine import Frame
from klaudit.code.interpreter.makers import gradient_is_off, made_by
from klaudit.code.interpreter.members import is_property, is_static
from klaudit.code.interpreter.results import Results, nodes_in, parameters_given
from klaudit.code.modules import FunctionInfo
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.code.screen import touches_log_probabilities
from klaudit.code.values import (
    Alternatives,
    Arguments,
    ClassObject,
    Closure,
    Imported,
    Instance,
    Mapping,
    Operation,
    Path,
    Sequence,
    Value,
)  # fmt: skip

MAX_CALL_DEPTH = 8


class Following(Results):
    """Binds arguments and runs functions."""

    def __init__(self, *args: object, **keywords: object) -> None:
        super().__init__(*args, **keywords)  # type: ignore[arg-type]
        self.running: list[ast.AST] = []

    def run(self, frame: Frame) -> Value:
        raise NotImplementedError

    def apply(self, callee: Value, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def operation(self, callee: Operation, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def partial(self, arguments: Arguments) -> Value:
        if not arguments.positional:
            return Path("partial()", "partial")
        target = arguments.positional[0]
        if isinstance(target, Imported):
            target = self.resolved(target)
        rest, keywords = arguments.positional[1:], arguments.keywords
        if isinstance(target, Closure):
            return Closure(
                target.info, target.enclosing, target.receiver, [*target.args, *rest], {**target.keywords, **keywords}
            )
        if isinstance(target, Operation):
            return Operation(target.dotted, target.receiver, [*target.args, *rest], {**target.keywords, **keywords})
        role, text = parameters_given(Arguments(rest, keywords, arguments.syntax))
        if isinstance(target, Path) and role is not None:
            return replace(target, model=role, reason=f"computed by {target.text} with {text}")
        return target

    def construct(self, callee: ClassObject, arguments: Arguments, syntax: ast.Call) -> Value:
        """An object; where its class is a plain record, what it is given is there for whoever reads that field."""
        positional, keywords = arguments.positional, arguments.keywords
        if "__init__" not in callee.info.methods:
            keywords = {**dict(zip(callee.info.fields, positional, strict=False)), **keywords}
            for key, value in keywords.items():
                self.leave(key, value)
        return Instance(callee.info, f"{callee.info.name}(...)", positional, keywords)

    def leave(self, key: str, value: Value) -> None:
        """For other functions: a KL that was stored under a name that says so."""
        if names.speaks_of_kl(key) and any(node.bears_kl for node in nodes_in(value)):
            self.mailbox.setdefault(key, self.as_node(value))

    def instance_attribute(self, instance: Instance, name: str) -> Value:
        if name not in instance.attributes:
            instance.attributes[name] = Path(
                f"{instance.text}.{name}", name
            )  # stands while it is computed, against cycles
            instance.attributes[name] = self._compute_attribute(instance, name)
        return instance.attributes[name]

    def _compute_attribute(self, instance: Instance, name: str) -> Value:
        if method := self.program.method(instance.info, name):
            if is_property(method):
                return Path(f"{instance.text}.{name}", name)
            return Closure(method, receiver=instance)
        written = self.written_in_init(instance.info, name)
        if written is None:
            given = instance.keywords.get(name)  # a dataclass
            return given or self.class_attribute(instance.info, name) or Path(f"{instance.text}.{name}", name)
        value, init = written
        bound = self._bound(Closure(init, receiver=instance), Arguments(list(instance.args), dict(instance.keywords)))
        return self.evaluate(value, Frame(init.module, init, bound, receiver=instance))

    def _bound(self, callee: Closure, arguments: Arguments) -> dict[str, Value]:
        """Parameters of a function as a call binds them; those not given have their default, if that is a constant."""
        syntax = callee.info.syntax.args
        bound: dict[str, Value] = {}
        for name, value in self.parameters(callee.info, callee.receiver).items():
            bound[name] = value.default if isinstance(value, Path) and value.default is not None else value
        positional = [parameter.arg for parameter in (*syntax.posonlyargs, *syntax.args)]
        if callee.info.owner is not None and not is_static(callee.info) and positional and callee.receiver is not None:
            positional = positional[1:]
        given = [*callee.args, *arguments.positional]
        bound.update(zip(positional, given, strict=False))
        if syntax.vararg is not None and len(given) > len(positional):
            bound[syntax.vararg.arg] = Sequence(list(given[len(positional) :]))
        keywords = {**callee.keywords, **arguments.keywords}
        accepted = set(positional) | {parameter.arg for parameter in syntax.kwonlyargs}
        bound.update({name: value for name, value in keywords.items() if name in accepted})
        if syntax.kwarg is not None:
            others = {name: value for name, value in keywords.items() if name not in accepted}
            bound[syntax.kwarg.arg] = Mapping(others, rest=arguments.rest)
        return bound

    def closure(self, callee: Closure, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        info = callee.info
        if not self._is_worth_running(callee, arguments) or self._is_changed_by_decorator(info):
            return self.as_made(info, self.unfollowed(info.qualified, callee.receiver, arguments, syntax, frame))
        if info.syntax in self.running or len(self.running) >= MAX_CALL_DEPTH:
            return self.unfollowed(info.qualified, callee.receiver, arguments, syntax, frame)
        self.called.add(info.syntax)
        self.followed.add(syntax)
        inner = Frame(
            info.module, info, self._bound(callee, arguments), callee.enclosing, callee.receiver, (*frame.called_under, *frame.path),
            without_gradient=frame.without_gradient + gradient_is_off(info), adapter_off=frame.adapter_off,
            adapter_switched=frame.adapter_switched,
        )  # fmt: skip
        self.running.append(info.syntax)
        self.calls_out.append(self.site(syntax, frame))
        try:
            result = self.run(inner)
        finally:
            self.running.pop()
            self.calls_out.pop()
        if inner.without_gradient:
            result = self.without_gradient(result)
        for node in nodes_in(result):
            if node.bears_kl:
                self.graph.bind(node, "", self.site(syntax, frame))
        return result

    def as_made(self, info: FunctionInfo, value: Value) -> Value:
        """What a helper that is known by its name gives: without gradient, or with the sign that it returns it with."""
        if not names.is_log_probability(info.name) or names.speaks_of_kl(info.name):
            return self.without_gradient(value) if gradient_is_off(info) else value
        made = made_by(info)
        if made.detached:
            value = self.without_gradient(value)
        return self.graph.negative(self.as_node(value)) if made.negated else value

    def as_namesake_makes(self, name: str, value: Value, frame: Frame) -> Value:
        """The result of a method of something from outside, where one class of the file has a method of that name."""
        if not names.is_log_probability(name):
            return value
        found = [info.methods[name] for info in frame.module.classes.values() if name in info.methods]
        return self.as_made(found[0], value) if len(found) == 1 else value

    def _is_changed_by_decorator(self, info: FunctionInfo) -> bool:
        """A decorator of the tree calculates with what the function gives: then its own body does not say what it is."""
        for decorator in getattr(info.syntax, "decorator_list", ()):
            made_by = decorator.func if isinstance(decorator, ast.Call) else decorator
            found = self.program.look_up(info.module, made_by.id) if isinstance(made_by, ast.Name) else None
            if isinstance(found, FunctionInfo) and any(
                isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp | ast.UnaryOp)
                for node in ast.walk(found.syntax)
            ):
                return True
        return False

    def _is_worth_running(self, callee: Closure, arguments: Arguments) -> bool:
        name = callee.info.name
        if isinstance(callee.info.syntax, ast.Lambda) or _only_asks(callee.info):
            return True
        given = [
            value
            for value in (*callee.args, *arguments.all())
            if isinstance(value, Node | Path | Sequence | Alternatives)
        ]
        nodes = [node for value in given for node in nodes_in(value)]
        if any(node.bears_kl for node in nodes):
            return not names.is_aggregation(name)
        paths = [value.name for value in given if isinstance(value, Path)]
        given_tokens = any(node.roles & (POLICY | OLD | REFERENCE) and not node.vocabulary for node in nodes) or any(
            map(names.is_log_probability, paths)
        )
        given_logits = any(node.vocabulary for node in nodes) or any(map(names.is_logits, paths))
        if names.is_log_probability(name) and not names.speaks_of_kl(name) and (given_logits or not given_tokens):
            return False  # makes log-probabilities out of logits or of a model: its name and arguments say all
        return (
            ((given_tokens or given_logits) and not names.is_aggregation(name))
            or touches_log_probabilities(callee.info)
            or _closes_over_log_probabilities(callee)
        )

    def imported_call(self, callee: Imported, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        """A call into another file is followed where its name or what it is given could concern a penalty."""
        given = [node for value in arguments.all() for node in nodes_in(value)]
        matters = any(node.roles & (POLICY | OLD | REFERENCE) for node in given) or any(
            isinstance(value, Path) and (names.is_log_probability(value.name) or names.is_logits(value.name))
            for value in arguments.all()
        )
        if (
            (matters and not names.is_aggregation(callee.name))
            or names.speaks_of_kl(callee.name)
            or (names.is_log_probability(callee.name) and not frame.without_gradient)  # which may lose the gradient
            or _is_loss_class(callee.name)
        ):
            found = self.resolved(callee)
            if not isinstance(found, Imported):
                return self.apply(found, arguments, syntax, frame)
        return self.operation(Operation(callee.dotted), arguments, syntax, frame)


def _only_asks(info: FunctionInfo) -> bool:
    """`def exists(value): return value is not None`: a test by another name."""
    match getattr(info.syntax, "body", None):
        case [ast.Return(value=ast.Compare())] | [ast.Expr(value=ast.Constant()), ast.Return(value=ast.Compare())]:
            return True
    return False


def _closes_over_log_probabilities(callee: Closure) -> bool:
    """An inner function that computes with log-probabilities of the function around it."""
    around = callee.enclosing or {}
    tokens = {name for name, value in around.items() if _holds_log_probability(value)}
    return bool(tokens) and any(
        isinstance(node, ast.Name) and node.id in tokens for node in ast.walk(callee.info.syntax)
    )


def _holds_log_probability(value: Value) -> bool:
    if isinstance(value, Path):
        return names.is_log_probability(value.name)
    return isinstance(value, Node) and bool(value.roles & (POLICY | OLD | REFERENCE))


def _is_loss_class(name: str) -> bool:
    return name[:1].isupper() and (names.is_loss(name) or names.is_reward(name))
