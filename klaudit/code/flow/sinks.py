"""Where values go: what a function returns or stores, and whether that is a loss, a reward or a metric."""

from __future__ import annotations

import ast

from msgspec import Struct

from klaudit.code import names
from klaudit.code.conditions import ALWAYS, Condition
from klaudit.code.graph import READ_OUT, Node, Op, Site
from klaudit.code.interpreter.machine import Frame, Machine, Sink
from klaudit.code.modules import FunctionInfo
from klaudit.code.result import Place
from klaudit.code.roles import FOREIGN
from klaudit.code.values import Alternatives, Instance, Mapping, Sequence, Value


class Target(Struct, frozen=True):
    """A value that reached a place.  `certain`: what the code does shows it; otherwise only a name does.

    `needs_company`: a name like `kl_loss` is no loss by itself, only a sum or a product with a coefficient is.
    """

    place: Place
    node: Node
    site: Site
    what: str
    certain: bool
    condition: Condition = ALWAYS
    needs_company: bool = False
    called_at: Site | None = None
    without_gradient: bool = False

    @property
    def may_be_live(self) -> bool:
        """Gradient could flow through the value: through the policy's log-probabilities, or through tensors that are not followed."""
        return not self.without_gradient and bool(self.node.live or self.node.roles & FOREIGN)


def targets(machine: Machine, frame: Frame) -> list[Target]:
    """All that a run of a function found: the certain ones first, and of those of a kind the last first, which hold the others."""
    found = [_of_sink(sink) for sink in machine.sinks]
    found += _returned(machine, frame)
    rank = {"loss": 0, "reward": 1, "metric": 2, "unknown": 3}
    return sorted(found, key=lambda target: (not target.certain, rank[target.place], -target.node.serial))


def _of_sink(sink: Sink) -> Target:
    place: Place = "metric" if sink.kind == "metric" else "reward" if sink.kind == "reward" else "loss"
    what = {"backward": "back-propagated", "metric": f"reported ({sink.name})"}.get(sink.kind, f"stored as {sink.name}")
    company = sink.kind in ("reward", "named-loss")
    return Target(
        place, sink.node, sink.site, what, sink.kind != "named-loss", sink.condition, company, sink.called_at, sink.without_gradient
    )  # fmt: skip


def _returned(machine: Machine, frame: Frame) -> list[Target]:
    found: list[Target] = []
    place, certain = _place_of(frame.info)
    off = bool(frame.without_gradient)
    has_reward = any(
        sink.kind == "reward" and sink.node.bears_kl for sink in machine.sinks
    )  # and what is returned is a copy
    for condition, value, site in frame.returns:
        if _is_report(site):
            continue
        for at, (name, node) in enumerate(parts(machine, value)):
            if not node.bears_kl or (place != "reward" and _is_read_out(node)):
                continue
            if place in ("loss", "reward") and _is_what_the_name_says(place, at, name):
                found.append(
                    Target(place, node, site, f"returned by {_name(frame)}", certain, condition, without_gradient=off)
                )
            elif name and names.is_loss(name):
                found.append(
                    Target("loss", node, site, f"returned as {name}", False, condition, True, without_gradient=off)
                )
            elif name and not has_reward and names.is_reward(name) and not names.is_metric(name):
                found.append(
                    Target("reward", node, site, f"returned as {name}", True, condition, True, without_gradient=off)
                )
            elif not _is_called_a_reward(machine, node):
                found.append(
                    Target(
                        "unknown",
                        node,
                        site,
                        f"returned by {_name(frame)}",
                        False,
                        condition,
                        True,
                        without_gradient=off,
                    )
                )
    return found


def _is_report(site: Site) -> bool:
    """`return infos`: what a function gives for the logs is none of what its name speaks of."""
    given = getattr(site.syntax, "value", None)
    return isinstance(given, ast.Name | ast.Attribute) and names.is_metric(ast.unparse(given).rpartition(".")[2])


def _is_what_the_name_says(place: Place, at: int, key: str) -> bool:
    """A function's name speaks of the tensor that it gives, or the first of several; of the entries of a dictionary those named alike."""
    if not key:
        return at == 0
    if place == "reward":
        return names.is_reward(key) and not names.is_metric(key)
    return at == 0 or names.is_loss(key)


def _is_read_out(node: Node) -> bool:
    """A number for the logs: no optimiser can use it."""
    return node.op is Op.DETACH and node.text == READ_OUT


def _is_called_a_reward(machine: Machine, node: Node) -> bool:
    """Also an implicit one, as preference losses and process reward models have: a log-ratio that is no penalty."""
    return any(names.speaks_of_reward(name) for name, _ in machine.graph.bound_to.get(node, ()))


def _name(frame: Frame) -> str:
    return f"{frame.info.qualified}()" if frame.info else "the module"


def _place_of(info: FunctionInfo | None) -> tuple[Place, bool]:
    """What a function returns, by its name and its class's."""
    if info is None:
        return "unknown", False
    name = info.name
    if names.speaks_of_kl(name) or (names.is_metric(name) and not names.is_loss(name)):
        return "unknown", False
    if names.is_loss(name) or name in ("training_step", "actor_step"):
        return "loss", True
    if info.owner is not None and name in ("forward", "__call__") and names.is_loss(info.owner.name):
        return "loss", True
    return ("reward", True) if names.is_reward(name) else ("unknown", False)


def parts(machine: Machine, value: Value) -> list[tuple[str, Node]]:
    """The tensors of a returned value in order, with the key of each where it has one; what is no tensor is a mask."""
    if isinstance(value, Sequence):
        return [("", _tensor(machine, item)) for item in value.items]
    if isinstance(value, Instance):
        return [(key, _tensor(machine, given)) for key, given in value.keywords.items()]
    if isinstance(value, Mapping):
        return [(key, _tensor(machine, entry)) for key, entry in value.entries.items()]
    if isinstance(value, Alternatives) and not any(isinstance(arm, Node) for _, arm in value.arms):
        return [part for _, arm in value.arms for part in parts(machine, arm)]
    return [("", _tensor(machine, value))]


def _tensor(machine: Machine, value: Value) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, Alternatives) and any(isinstance(arm, Node) for _, arm in value.arms):
        return machine.as_node(value)
    return machine.graph.mask
