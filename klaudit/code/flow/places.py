"""Where each formula of a function ends: in a loss, a reward, a metric, or nowhere that can be told."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from klaudit.code.conditions import can_hold
from klaudit.code.flow.passage import Passage
from klaudit.code.flow.sinks import Target
from klaudit.code.flow.terms import Occurrence, occurrences
from klaudit.code.graph import Node
from klaudit.code.interpreter.machine import Machine
from klaudit.code.result import Place


class Placed(Struct, frozen=True):
    """An occurrence with the place that its value reaches."""

    occurrence: Occurrence
    target: Target
    place: Place
    attached: bool


def placed(machine: Machine, found: list[Target], *, called: bool) -> list[Placed]:
    """Each formula once per place; what reaches a loss or a reward is no mere metric."""
    best: dict[tuple[Node, Place, bool], Placed] = {}
    walked: dict[Place, set[Node]] = {}
    for target in found:
        seen = walked.setdefault(target.place, set())
        if target.node in seen:  # an intermediate value of what was walked already
            continue
        for occurrence in occurrences(target.node, machine.graph, Passage(condition=target.condition), seen):
            if not can_hold(occurrence.passage.condition):
                continue
            item = _place(occurrence, target, called=called)
            key = (occurrence.node, item.place, occurrence.passage.detached)
            best[key] = _better(item, best.get(key))
    decided = {node for node, place, _ in best if place in ("loss", "reward")}
    rewarded = {node for node, place, _ in best if place == "reward"}
    return [
        item
        for (node, place, detached), item in best.items()
        if not (place not in ("loss", "reward") and node in decided)
        and not (place == "loss" and not item.target.certain and node in rewarded)
        and not (place == "loss" and _is_copy(item, best.get((node, place, not detached)), detached=detached))
    ]


def _is_copy(item: Placed, other: Placed | None, *, detached: bool) -> bool:
    """Of a loss with gradient and the same without: what is returned or stored detached beside the one trained on is for the logs."""
    if other is None:
        return False
    if item.target.certain != other.target.certain:
        return not item.target.certain
    return detached and (not item.target.certain or item.target.what.startswith("returned"))


def _better(item: Placed, other: Placed | None) -> Placed:
    """The way that tells more; a division by the spread counts wherever it happens."""
    if other is None:
        return item
    chosen = item if _tells_more(item, other) else other
    if item.occurrence.passage.divided_by_spread or other.occurrence.passage.divided_by_spread:
        passage = replace(chosen.occurrence.passage, divided_by_spread=True)
        chosen = replace(chosen, occurrence=replace(chosen.occurrence, passage=passage))
    return chosen


def _tells_more(item: Placed, other: Placed) -> bool:
    """Of two ways to a place of the same certainty: the one that is understood, in a sum with others, where it happens first."""
    if item.target.certain != other.target.certain:
        return False

    def rank(placed: Placed) -> tuple[bool, bool, int]:
        passage = placed.occurrence.passage
        return bool(passage.through_unknown), not passage.beside_others, getattr(placed.target.site.syntax, "lineno", 0)

    return item.attached == other.attached and rank(item) < rank(other)


def _place(occurrence: Occurrence, target: Target, *, called: bool) -> Placed:
    passage = occurrence.passage
    place: Place = target.place
    company = passage.beside_others or bool(passage.coefficients) or abs(passage.factor) not in (0.5, 1.0, 2.0)
    if place == "loss" and (passage.weighted_by_policy or passage.named_reward):
        attached = occurrence.node.live and not passage.detached and passage.weighted_by_policy
        return Placed(occurrence, target, "reward", attached)
    if target.needs_company and not company:
        place = "unknown"
    elif target.what.startswith("returned by") and place == "unknown":
        place = "loss" if bool(passage.coefficients) and not called else "unknown"  # a penalty term, ready to be added
    return Placed(occurrence, target, place, False)
