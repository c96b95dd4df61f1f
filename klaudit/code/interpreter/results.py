"""Calls that are not run: what their results are, and which of them are a use of a value (a report, a backward pass)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from klaudit.code import names
from klaudit.code.graph import Node, Op, Site
from klaudit.code.interpreter.expressions import Expressions
from klaudit.code.interpreter.machine import Frame, is_tensor
from klaudit.code.interpreter.picking import token_log_probability
from klaudit.code.interpreter.reported import METRIC_CALLS
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.code.values import Alternatives, Arguments, Literal, Mapping, Path, Sequence, Value


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
            return self.graph.make(Op.OPAQUE, bearing or nodes, site, text=dotted, axis=_axis(name, arguments))
        tensors = [node for node in nodes if node.roles]
        if tensors and names.is_aggregation(name):
            return self.graph.make(Op.OPAQUE, tensors, site, text=dotted, axis=_axis(name, arguments))
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
        logits += [self.as_node(value, site) for value in arguments.all() if _are_logits(value)]
        if names.is_log_probability(name) and len(logits) == 1:
            if arguments.keywords.get("gather") == Literal(False):
                return self.graph.make(Op.LOGSOFTMAX, logits, site)
            return token_log_probability(self.graph, logits[0], site)
        model, reason = self._maker(dotted, callee, arguments)
        if (frame.adapter_off or frame.adapter_switched) and (model is None or model == POLICY):
            model, reason = REFERENCE, "computed with the adapter switched off"
        text = f"{dotted}(...)@{getattr(site.syntax, 'lineno', 0)}:{getattr(site.syntax, 'col_offset', 0)}"
        return Path(text, name, model, reason, detached=frame.without_gradient > 0)

    def _maker(self, dotted: str, callee: Value | None, arguments: Arguments) -> tuple[int | None, str]:
        if names.gives_reference(dotted):  # a method of the policy may speak for the reference that it keeps
            return REFERENCE, f"computed by {dotted}"
        role, text = parameters_given(arguments)  # one network serves several models
        if role is not None and role != POLICY:
            return role, f"computed by {dotted} with {text}"
        itself = callee.text if isinstance(callee, Path) else ""  # as whoever passed it calls it
        texts = (
            dotted,
            itself,
            itself.rpartition(".")[0],
            *(value.text for value in arguments.all() if isinstance(value, Path)),
        )
        for maker in texts:
            holder = names.names_model_of(maker)
            if holder is not None and holder != POLICY:
                return holder, f"computed by {maker}"
        if isinstance(callee, Path) and callee.model is not None:
            return callee.model, callee.reason
        if (kept := next(filter(_is_kept_reference, arguments.all()), None)) is not None and isinstance(kept, Path):
            return REFERENCE, f"computed by {kept.text}: {kept.reason}"
        for maker in texts:
            if names.names_model_of(maker) is not None:
                return POLICY, f"computed by {maker}"
        return (role, f"computed by {dotted} with {text}") if role is not None else (None, "")

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


def _axis(name: str, arguments: Arguments) -> int | None:
    """Over which axis a function that averages by its name does so; None where the call does not say."""
    given = arguments.keywords.get("dim", arguments.keywords.get("axis"))
    if given is None and names.is_average(name):
        given = next(
            (value for value in arguments.positional[1:] if isinstance(value, Node) and value.op is Op.NUMBER), None
        )
    number = given.number if isinstance(given, Node) and given.op is Op.NUMBER else None
    return None if number is None else int(number)


def spelled(callee: Value, syntax: ast.Call) -> str:
    """What is called, as whoever passed it on names it."""
    if isinstance(callee, Path) and all(part.isidentifier() for part in callee.text.split(".")):
        return callee.text
    return ast.unparse(syntax.func)


def _is_log_probability(value: Value) -> bool:
    """Something from outside that is named like one, on some branch."""
    if isinstance(value, Alternatives):
        return any(_is_log_probability(arm) for _, arm in value.arms)
    return isinstance(value, Path) and names.is_log_probability(value.name)


def _is_kept_reference(value: Value) -> bool:
    """A model, not a tensor, that is known to be the reference, whatever it is called."""
    is_model = isinstance(value, Path) and "(...)" not in value.text and not is_tensor(value)
    return is_model and isinstance(value, Path) and value.model == REFERENCE


def _are_logits(value: Value) -> bool:
    return isinstance(value, Path) and names.is_logits(value.name)


def parameters_given(arguments: Arguments) -> tuple[int | None, str]:
    """Whose parameters a call is given and under which name; None where none are, or those of several models."""
    found: dict[int, str] = {}
    for value, spelling in _with_spellings(arguments):
        for part in value.entries.values() if isinstance(value, Mapping) else (value,):  # {"params": ref_params}
            role, text = _whose_parameters(part, spelling)
            if role is not None:
                found.setdefault(role, text)
    return next(iter(found.items())) if len(found) == 1 else (None, "")


def _whose_parameters(value: Value, spelling: str) -> tuple[int | None, str]:
    """By where they come from, then by what the call itself calls them."""
    if isinstance(value, Path):
        if value.model is not None and names.are_parameters(value.name):
            return value.model, value.name
        if (role := names.parameters_of(value.text)) is not None:
            return role, value.text
    return names.parameters_of(spelling), spelling


def _with_spellings(arguments: Arguments) -> Iterator[tuple[Value, str]]:
    """Every argument with the name that the call spells for it, empty where it is no name or not written there."""
    syntax = arguments.syntax
    spelled: list[ast.expr] = list(syntax.args) if syntax is not None else []
    keywords = {keyword.arg: keyword.value for keyword in syntax.keywords} if syntax is not None else {}
    if len(spelled) > len(arguments.positional):
        spelled = []  # some are bound elsewhere
    written = [None] * (len(arguments.positional) - len(spelled)) + spelled
    for value, expression in zip(arguments.positional, written, strict=True):
        yield value, _name_in(expression)
    for key, value in arguments.keywords.items():
        yield value, _name_in(keywords.get(key))


def _name_in(expression: ast.expr | None) -> str:
    return ast.unparse(expression) if isinstance(expression, ast.Name | ast.Attribute) else ""


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
