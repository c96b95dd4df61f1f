"""Calls that are not run: what their results are, and which of them are a use of a value (a report, a backward pass)."""

from __future__ import annotations

import ast

from klaudit.code import names
from klaudit.code.graph import Node, Op, Site
from klaudit.code.interpreter.expressions import Expressions
from klaudit.code.interpreter.machine import Frame
from klaudit.code.interpreter.operations import token_log_probability
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.code.values import Alternatives, Arguments, Literal, Mapping, Path, Sequence, Value

METRIC_CALLS = frozenset(
    {"print", "log", "add_scalar", "record", "scalar", "debug", "info", "warning", "log_metric", "log_dict"}
)


class Results(Expressions):
    """Names the results of calls into code that is not read."""

    def unfollowed(
        self, dotted: str, callee: Value | None, arguments: Arguments, syntax: ast.Call, frame: Frame
    ) -> Value:
        """The result of a call whose code is not run: an opaque node where a KL went in, else an object known by its maker."""
        site = self.site(syntax, frame)
        name = dotted.rsplit(".", 1)[-1]
        nodes = [node for value in arguments.all() for node in nodes_in(value)]
        if names.speaks_of_kl(name):
            nodes += [self.as_node(value, site) for value in arguments.all() if _is_log_probability(value)]
        bearing = [node for node in nodes if node.bears_kl]
        pair = 0
        for node in nodes:
            pair |= node.roles
        if bearing or (pair & REFERENCE and pair & (POLICY | OLD)):
            if names.is_metric(dotted) or name in METRIC_CALLS:
                self.note_arguments(name, arguments, syntax, frame)
            for keyword, value in arguments.keywords.items():
                if isinstance(value, Node) and value.bears_kl and name[:1].isupper():
                    self.note_stored(keyword, value, frame, site)
            return self.graph.make(Op.OPAQUE, bearing or nodes, site, text=dotted)
        tensors = [node for node in nodes if node.roles]
        if tensors and names.is_aggregation(name):
            return self.graph.make(Op.OPAQUE, tensors, site, text=dotted)
        return self._made_by(dotted, name, callee, arguments, nodes, frame, site)

    def _made_by(
        self,
        dotted: str,
        name: str,
        callee: Value | None,
        arguments: Arguments,
        nodes: list[Node],
        frame: Frame,
        site: Site,
    ) -> Value:
        """An object from outside, with whose model made it where the call shows that."""
        logits = [node for node in nodes if node.vocabulary and node.roles]
        if names.is_log_probability(name) and len(logits) == 1:
            if arguments.keywords.get("gather") == Literal(False):
                return self.graph.make(Op.LOGSOFTMAX, logits, site)
            return token_log_probability(self.graph, logits[0], site)
        model, reason = self._maker(dotted, callee, arguments)
        if frame.adapter_off and (model is None or model == POLICY):
            model, reason = REFERENCE, "computed with the adapter switched off"
        text = f"{dotted}(...)@{getattr(site.syntax, 'lineno', 0)}:{getattr(site.syntax, 'col_offset', 0)}"
        return Path(text, name, model, reason, detached=frame.without_gradient > 0)

    def _maker(self, dotted: str, callee: Value | None, arguments: Arguments) -> tuple[int | None, str]:
        if names.gives_reference(dotted):  # a method of the policy may speak for the reference that it keeps
            return REFERENCE, f"computed by {dotted}"
        owner = callee.text.rpartition(".")[0] if isinstance(callee, Path) else ""
        texts = (
            dotted,
            owner,
            *(value.text for value in arguments.all() if isinstance(value, Path)),
        )
        for text in texts:
            role = names.names_model_of(text)
            if role is not None and (role != POLICY):
                return role, f"computed by {text}"
        if isinstance(callee, Path) and callee.model is not None:
            return callee.model, callee.reason
        for text in texts:
            if names.names_model_of(text) is not None:
                return POLICY, f"computed by {text}"
        return None, ""

    # --- uses of a value ------------------------------------------------------------------------------------------------------------

    def note_backward(self, receiver: Value | None, arguments: Arguments, syntax: ast.Call, frame: Frame) -> None:
        site = self.site(syntax, frame)
        values = list(arguments.positional)
        if isinstance(receiver, Node):
            values = [receiver]
        elif isinstance(syntax.func, ast.Attribute) and isinstance(
            syntax.func.value, ast.Call
        ):  # scaler.scale(loss).backward()
            values = [self.evaluate(argument, frame) for argument in syntax.func.value.args]
        elif isinstance(receiver, Path | Alternatives) and not values:
            values = [receiver]
        for value in values:
            for node in nodes_in(value) or ([self.as_node(value)] if isinstance(value, Alternatives) else []):
                self.note("backward", node, "backward", frame, site)

    def note_arguments(self, name: str, arguments: Arguments, syntax: ast.Call, frame: Frame) -> None:
        for value in arguments.all():
            for node in nodes_in(value):
                self.note("metric", node, name, frame, self.site(syntax, frame))

    def note_stored(self, container: str, node: Node, frame: Frame, site: Site) -> None:
        if names.is_metric(container):
            self.note("metric", node, container, frame, site)
        else:
            self.note_name(container, node, frame, site)


def _is_log_probability(value: Value) -> bool:
    """Something from outside that is named like one, on some branch."""
    if isinstance(value, Alternatives):
        return any(_is_log_probability(arm) for _, arm in value.arms)
    return isinstance(value, Path) and names.is_log_probability(value.name)


def nodes_in(value: Value) -> list[Node]:
    if isinstance(value, Node):
        return [value]
    if isinstance(value, Sequence):
        return [node for item in value.items[:20] if isinstance(item, Node) for node in (item,)]
    if isinstance(value, Mapping):
        return [entry for entry in value.entries.values() if isinstance(entry, Node)]
    if isinstance(value, Alternatives):
        return [arm for _, arm in value.arms if isinstance(arm, Node)]
    return []
