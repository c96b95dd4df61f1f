"""What a function gives back that no other of its file calls: a penalty ready to be added, a reward less its penalty, or nobody knows.

The sign tells the two apart, since a loss adds a penalty and a reward subtracts it, unless the sum says by its names what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from klaudit.code import names
from klaudit.code.flow.places import Placed
from klaudit.code.graph import Graph, Site, reachable
from klaudit.code.modules import FunctionInfo
from klaudit.code.result import Place, Variant

# of a reward that is turned round, or of one that a log-ratio is and not what a penalty is taken from
_TURNED = frozenset({"neg", "negative", "negated", "minus", "cost", "costs", "implicit", "objective"})


def place_of_returned(item: Placed, variants: Sequence[Variant], info: FunctionInfo | None, graph: Graph) -> Place:
    """Where what a function returns belongs, judged by its sign, its gradient, and the names beside it."""
    passage, node = item.occurrence.passage, item.occurrence.node
    live = node.live and not passage.detached
    if passage.joined_at is None:
        return "loss" if live and _is_a_penalty(item, variants, info, graph) else "unknown"
    beside = list(_names_in(passage.joined_at))
    if any(not _TURNED.isdisjoint(names.words(name)) for name in (*beside, info.name if info is not None else "")):
        return "unknown"
    if any(map(names.is_loss, beside)):
        return "loss"
    owner = info.owner.name if info is not None and info.owner is not None else ""
    if not passage.beside_gradient and any(
        map(names.is_scored, (*beside, info.name if info is not None else "", owner))
    ):
        return "reward"
    if all(passage.factor * variant.what.scale > 0 for variant in variants):
        return "loss" if live else "unknown"
    return "unknown" if live else "reward"  # with gradient: an objective that somebody may turn round for his optimiser


def _is_a_penalty(item: Placed, variants: Sequence[Variant], info: FunctionInfo | None, graph: Graph) -> bool:
    """A weighted log-ratio alone is an implicit reward as often, unless something calls it a KL."""
    if any(variant.what.estimator != "k1" or variant.what.gradient != "pathwise" for variant in variants):
        return True
    on_the_way = reachable([item.target.node])
    bound = (name for node in on_the_way if node.bears_kl for name, _ in graph.bound_to.get(node, ()))
    return any(map(names.speaks_of_kl, bound)) or (info is not None and names.speaks_of_kl(info.name))


def _names_in(site: Site) -> Iterator[str]:
    for node in ast.walk(site.syntax):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
