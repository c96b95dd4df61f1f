"""Calls: library operations by the whitelist, functions of the tree by running them, the rest as results from outside."""

from __future__ import annotations

import ast
from functools import reduce

from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.conditions import TEXT_METHODS
from klaudit.code.graph import Node, Op, Site
from klaudit.code.interpreter.contraction import contracted
from klaudit.code.interpreter.following import Following
from klaudit.code.interpreter.given import Given
from klaudit.code.interpreter.layers import LAYERS, layer
from klaudit.code.interpreter.machine import MAX_ARMS, Frame, is_tensor
from klaudit.code.interpreter.operations import COPIES_BY_VALUE, DETACHING, OPERATIONS, SAME
from klaudit.code.interpreter.picking import token_log_probability
from klaudit.code.interpreter.reported import METRIC_CALLS
from klaudit.code.interpreter.results import spelled
from klaudit.code.values import (
    Alternatives,
    Arguments,
    ClassObject,
    Closure,
    Distribution,
    Imported,
    Instance,
    Literal,
    Mapping,
    Operation,
    Path,
    Sequence,
    Value,
)  # fmt: skip

_BUILTINS = names.vocabulary(
    """
    max min abs sum float int len list tuple dict zip enumerate reversed sorted range getattr isinstance print map
    iter next bool str any all hasattr set
    """
)
# of a function: what it computes stays the same
_WRAPPERS = frozenset({"vmap", "pmap", "jit", "filter_jit", "compile", "remat", "shard_map"})
_OF_LOGITS = frozenset({"log_softmax", "softmax", "logsumexp"})
_FUNCTIONS = Closure | Imported | Path
_OF_PROCESSES = frozenset({"gather", "gather_for_metrics"})  # with one argument: of a launcher, not of a tensor
_MODES = frozenset({"eval", "train"})  # of a model, which gives itself
_DISTRIBUTIONS = frozenset({"Categorical", "OneHotCategorical"})


class Calls(Following):
    """Follows, recognises or records calls."""

    def call(self, syntax: ast.Call, frame: Frame) -> Value:
        if isinstance(syntax.func, ast.Name) and syntax.func.id in _BUILTINS and syntax.func.id not in frame.names:
            if syntax.func.id == "sum" and (terms := self.each(syntax.args, frame)) is not None:
                return self._sum(Sequence(terms), self.site(syntax, frame))
            return self._builtin(syntax.func.id, self.arguments(syntax, frame), syntax, frame)
        if (
            isinstance(syntax.func, ast.Call)
            and isinstance(syntax.func.func, ast.Name)
            and syntax.func.func.id == "super"
        ):
            return self.outside(syntax)
        if isinstance(syntax.func, ast.Attribute):
            owner = self.evaluate(syntax.func.value, frame)
            return self.method(owner, syntax.func, self.arguments(syntax, frame), syntax, frame)
        return self.apply(self.evaluate(syntax.func, frame), self.arguments(syntax, frame), syntax, frame)

    def method(
        self, owner: Value, function: ast.Attribute, arguments: Arguments, syntax: ast.Call, frame: Frame
    ) -> Value:
        """A method of a value; of each alternative where there are several."""
        if isinstance(owner, Alternatives) and owner.is_comparison:
            owner = self.graph.mask
        if isinstance(owner, Alternatives) and function.attr != "backward":
            arms = [(condition, arm) for condition, arm in owner.arms if arm != Literal(None)]
            return self.alternatives(
                [(condition, self.method(arm, function, arguments, syntax, frame)) for condition, arm in arms]
            )
        callee = self.attribute(owner, function.attr, frame, function)
        if isinstance(callee, Path) and isinstance(owner, Path):
            return self._method_of_path(owner, callee, arguments, syntax, frame)
        return self.apply(callee, arguments, syntax, frame)

    def _method_of_path(self, owner: Path, callee: Path, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        """A method of something from outside: of a tensor or a setting where its name is one of theirs."""
        name = callee.text.rsplit(".", 1)[-1]
        if name in ("get", "pop") and arguments.positional:
            return self.item(owner, arguments.positional[0], frame, syntax)
        if name == "backward":
            self.note_backward(owner, arguments, syntax, frame)
        if (derived := self.text_method(owner, name, arguments.positional)) is not None:
            return derived
        if name in _OF_PROCESSES and len(arguments.positional) == 1:
            return self.unfollowed(callee.text, callee, arguments, syntax, frame)
        if name in SAME or name in _MODES:
            return owner  # a batch that is moved or cut is still a batch
        if name in OPERATIONS and names.names_model_of(owner.name) is None:
            return self._meaning(name, owner, arguments, syntax, frame)
        result = self.unfollowed(callee.text, callee, arguments, syntax, frame)
        return self.as_namesake_makes(name, result, frame)

    def arguments(self, syntax: ast.Call, frame: Frame) -> Arguments:
        positional: list[Value] = []
        for argument in syntax.args:
            value = self.evaluate(argument, frame)
            if isinstance(argument, ast.Starred) and isinstance(value, Sequence):
                positional.extend(value.items)
            else:
                positional.append(value)
        keywords: dict[str, Value] = {}
        rest: Path | None = None
        for keyword in syntax.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Mapping):
                keywords.update(value.entries)
                rest = value.rest or rest
            elif isinstance(value, Path):
                rest = value
        return Arguments(positional, keywords, syntax, rest)

    def apply(self, callee: Value, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        """The result of calling a value."""
        self.deeper()
        try:
            return self._apply(callee, arguments, syntax, frame)
        finally:
            self.shallower()

    def _apply(self, callee: Value, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        if isinstance(callee, Operation):
            return self.operation(callee, arguments, syntax, frame)
        if isinstance(callee, Imported):
            return self.imported_call(callee, arguments, syntax, frame)
        if isinstance(callee, Closure):
            return self.closure(callee, arguments, syntax, frame)
        if isinstance(callee, ClassObject):
            return self.construct(callee, arguments, syntax)
        if isinstance(callee, Instance):
            for method in ("__call__", "forward"):
                info = self.program.method(callee.info, method)
                if info is not None:
                    return self.closure(Closure(info, receiver=callee), arguments, syntax, frame)
        if isinstance(callee, Alternatives):
            return self.alternatives(
                [
                    (condition, self.apply(arm, arguments, syntax, frame))
                    for condition, arm in callee.arms
                    if arm != Literal(None)
                ]
            )
        return self.unfollowed(spelled(callee, syntax), callee, arguments, syntax, frame)

    # --- operations --------------------------------------------------------------------------------------------------------------

    def operation(self, callee: Operation, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        if callee.args or callee.keywords:
            arguments = Arguments(
                [*callee.args, *arguments.positional], {**callee.keywords, **arguments.keywords}, syntax
            )
        name = callee.dotted.rsplit(".", 1)[-1]
        receiver = callee.receiver
        if receiver is not None:
            special = self._method(receiver, name, arguments, syntax, frame)
            if special is not None:
                return special
        elif name == "partial":
            return self.partial(arguments)
        elif name in _WRAPPERS and arguments.positional and isinstance(arguments.positional[0], _FUNCTIONS):
            return self.partial(Arguments(arguments.positional[:1], {}))
        elif name in COPIES_BY_VALUE and arguments.positional:
            source = arguments.positional[1 if name.startswith("full") and len(arguments.positional) > 1 else 0]
            return self.graph.make(Op.DETACH, (self.as_node(source),), self.site(syntax, frame))
        elif name == "kl_divergence":
            return self._divergence(arguments, syntax, frame)
        elif name in _DISTRIBUTIONS:
            return self._distribution(arguments, syntax, frame)
        elif name in LAYERS:
            return layer(name, arguments)
        elif name == "einsum" and (
            product := contracted(self.graph, arguments, self.as_node, self.site(syntax, frame))
        ):
            return product
        if name in OPERATIONS:
            return self._meaning(name, receiver, arguments, syntax, frame)
        if name in METRIC_CALLS:
            self.note_arguments(name, arguments, syntax, frame)
        return self.unfollowed(callee.dotted, receiver, arguments, syntax, frame)

    def _meaning(
        self, name: str, receiver: Value | None, arguments: Arguments, syntax: ast.Call, frame: Frame
    ) -> Value:
        site = self.site(syntax, frame)
        if receiver is None:
            if not arguments.positional and not arguments.keywords:
                return self.graph.number(0.0)
            first = arguments.get(0, "input", "x", "a", "self", "tensors", "tensor", "condition")
            arguments = Arguments(arguments.positional[1:], arguments.keywords, syntax)
            receiver = first if first is not None else Literal(None)
        if isinstance(receiver, Path) and receiver.model is not None:
            if name in _OF_LOGITS and not names.is_logits(receiver.name):
                receiver = replace(receiver, name="logits")  # what a model gives, whatever it is called
            elif (name in SAME or name in DETACHING) and not is_tensor(receiver):
                return receiver if name in SAME else self.without_gradient(receiver)
        tensor = self.as_node(receiver, site)
        result = OPERATIONS[name](Given(self.graph, tensor, arguments, self.as_node, site))
        if name == "item":
            self.note("metric", tensor, "item", frame, site)
        return result

    def _method(self, receiver: Value, name: str, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value | None:
        """Methods of what is no tensor: containers, text; and `.backward()`."""
        if name == "backward":
            self.note_backward(receiver, arguments, syntax, frame)
        if isinstance(receiver, Sequence):
            return self._sequence_method(receiver, name, arguments, syntax, frame)
        if isinstance(receiver, Mapping):
            return self._mapping_method(receiver, name, arguments)
        if isinstance(receiver, Literal) and (name in TEXT_METHODS or name.endswith("with")):
            return self.text_method(receiver, name, arguments.positional)
        if isinstance(receiver, Alternatives) and name in ("endswith", "startswith"):
            return Literal(True)
        if isinstance(receiver, Distribution):
            return self._distribution_method(receiver, name, arguments, syntax, frame)
        return None

    def _sequence_method(
        self, receiver: Sequence, name: str, arguments: Arguments, syntax: ast.Call, frame: Frame
    ) -> Value | None:
        if name in ("append", "extend") and arguments.positional:
            value = arguments.positional[0]
            if frame.without_gradient:
                value = self.without_gradient(value)
            receiver.items.append(self.element(value) if name == "extend" else value)
            receiver.grows = True
            if isinstance(value, Node) and isinstance(syntax.func, ast.Attribute):
                self.note_stored(ast.unparse(syntax.func.value), value, frame, self.site(syntax, frame))
            return Literal(None)
        return None

    def _mapping_method(self, receiver: Mapping, name: str, arguments: Arguments) -> Value | None:
        if name in ("get", "pop") and arguments.positional:
            key = arguments.positional[0]
            if isinstance(key, Literal) and isinstance(key.value, str) and key.value in receiver.entries:
                return receiver.entries[key.value]
            if isinstance(key, Path):
                return self._entry(receiver, key, Frame(self.program.main, None, {}))
            if receiver.rest is not None and isinstance(key, Literal) and isinstance(key.value, str):
                return self.part_of_rest(receiver.rest, key.value)
            return arguments.get(1, "default") or Literal(None)
        if name == "update" and arguments.positional:
            given = arguments.positional[0]
            if isinstance(given, Mapping):
                receiver.entries.update(given.entries)
                receiver.rest = receiver.rest or given.rest
            elif isinstance(given, Path):
                receiver.rest = receiver.rest or given
            return Literal(None)
        if name == "copy":
            return Mapping(dict(receiver.entries), receiver.name, receiver.rest)
        if name in ("items", "values", "keys"):
            return (
                Sequence(list(receiver.entries.values()), grows=True)
                if name == "values"
                else Path(f"{receiver.name}.{name}()", "")
            )
        return None

    # --- distributions -----------------------------------------------------------------------------------------------------------

    def _distribution(self, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        logits = arguments.get(1, "logits")
        site = self.site(syntax, frame)
        if logits is not None and logits != Literal(None):
            return Distribution(self.as_node(logits, site))
        return Distribution(self.graph.make(Op.LOG, (self.as_node(arguments.get(0, "probs"), site),), site))

    def _distribution_method(
        self, receiver: Distribution, name: str, arguments: Arguments, syntax: ast.Call, frame: Frame
    ) -> Value | None:
        site = self.site(syntax, frame)
        if name == "log_prob":
            return token_log_probability(self.graph, receiver.logits, site)
        if name in ("kl", "kl_divergence") and arguments.positional:
            return self._divergence(Arguments([receiver, *arguments.positional], {}, syntax), syntax, frame)
        return self.graph.make(Op.OPAQUE, (receiver.logits,), site, text=name)

    def _divergence(self, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        """KL(p || q) over the vocabulary, of two distributions whose logits are known."""
        site = self.site(syntax, frame)
        one, other = arguments.get(0, "p"), arguments.get(1, "q")
        if not isinstance(one, Distribution) or not isinstance(other, Distribution):
            parts = [self.as_node(value, site) for value in (one, other) if value is not None]
            return self.graph.make(Op.OPAQUE, parts or [self.graph.number(0.0)], site, text="kl_divergence")
        log_p = self.graph.make(Op.LOGSOFTMAX, (one.logits,), site)
        log_q = self.graph.make(Op.LOGSOFTMAX, (other.logits,), site)
        terms = self.graph.make(
            Op.MUL, (self.graph.make(Op.EXP, (log_p,), site), self.graph.difference(log_p, log_q, site)), site
        )
        return self.graph.make(Op.REDUCE, (terms,), site, "sum", -1)

    # --- builtins ----------------------------------------------------------------------------------------------------------------

    def _sum(self, value: Value, site: Site) -> Node:
        if isinstance(value, Sequence) and value.items and not value.grows:
            return self.graph.sum([self.as_node(item, site) for item in value.items[:MAX_ARMS]], site)
        return self.graph.make(Op.REDUCE, (self.as_node(self.element(value), site),), site, "sum", 0)

    def _builtin(self, name: str, arguments: Arguments, syntax: ast.Call, frame: Frame) -> Value:
        site = self.site(syntax, frame)
        values = arguments.positional
        if name in ("max", "min") and len(values) > 1:
            nodes = [self.as_node(value, site) for value in values]
            op = Op.MAX if name == "max" else Op.MIN
            return reduce(lambda one, other: self.graph.make(op, (one, other), site), nodes[:MAX_ARMS])
        if name == "abs" and values:
            return self.graph.make(Op.ABS, (self.as_node(values[0], site),), site)
        if name == "sum" and values:
            return self._sum(values[0], site)
        if name in ("float", "int") and values:
            node = self.as_node(values[0], site)
            self.note("metric", node, name, frame, site)
            return self.graph.make(Op.DETACH, (node,), site)
        if name in ("list", "tuple", "iter", "sorted", "reversed", "set") and values:
            return values[0]
        if name == "next" and values:
            return self.element(values[0])
        if name == "zip":
            return Sequence([Sequence([self.element(value) for value in values])], grows=True)
        if name == "enumerate" and values:
            return Sequence([Sequence([self.graph.mask, self.element(values[0])])], grows=True)
        if name == "dict":
            source = values[0] if values else None
            entries = source.entries if isinstance(source, Mapping) else {}
            rest = source if isinstance(source, Path) else source.rest if isinstance(source, Mapping) else None
            return Mapping({**entries, **arguments.keywords}, rest=rest or arguments.rest)
        if (
            name == "getattr"
            and len(values) > 1
            and isinstance(values[1], Literal)
            and isinstance(values[1].value, str)
        ):
            return self.attribute(values[0], values[1].value, frame, syntax)
        if name in ("range", "len"):
            return self.graph.mask
        if name == "print":
            self.note_arguments("print", arguments, syntax, frame)
            return Literal(None)
        return Path(f"{ast.unparse(syntax)}", "")
