"""Where each formula of a function ends: in a loss, a reward, a metric, or nowhere that can be told."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from klaudit.code.conditions import ALWAYS, NEVER, Condition, both, can_hold, parts_of, united
from klaudit.code.flow.passage import Passage
from klaudit.code.flow.sinks import Target
from klaudit.code.flow.terms import Occurrence, occurrences
from klaudit.code.graph import Node, reachable
from klaudit.code.interpreter.machine import Machine
from klaudit.code.result import Place

MAX_WAYS = 24  # from one formula to one place, of which the conditions are compared


class Placed(Struct, frozen=True):
    """An occurrence with the place that its value reaches."""

    occurrence: Occurrence
    target: Target
    place: Place
    attached: bool
    by_group_std: tuple[Condition, ...] = ()  # of the ways that divide it by the spread of its group
    not_by_group_std: tuple[Condition, ...] = ()  # of those that do not
    ways: tuple[Condition, ...] = ()  # the conditions under which it reaches the place with this coefficient
    is_returned: bool = False  # with a coefficient, by a function that no other of its file calls and whose name does not say what it gives


def placed(machine: Machine, found: list[Target], *, called: bool) -> list[Placed]:
    """Each formula once per place; what reaches a loss or a reward is no mere metric."""
    best: dict[tuple[Node, Place, bool], Placed] = {}
    walked: dict[Place, set[Node]] = {}
    skipped: list[Target] = []
    for target in found:
        seen = walked.setdefault(target.place, set())
        if target.node in seen:  # an intermediate value of what was walked already
            skipped.append(target)
            continue
        for occurrence in occurrences(target.node, machine.graph, Passage(condition=target.condition), seen):
            if not can_hold(occurrence.passage.condition):
                continue
            item = _with_ways(_place(occurrence, target, called=called))
            key = (occurrence.node, item.place, occurrence.passage.detached)
            best[key] = _better(item, best.get(key))
    best = {key: _whichever_way(_where_not_divided(item, skipped)) for key, item in best.items()}
    decided = {node for node, place, _ in best if place in ("loss", "reward")}
    rewarded = {node for node, place, _ in best if place == "reward"}
    return [
        item
        for (node, place, detached), item in best.items()
        if not (place not in ("loss", "reward") and node in decided)
        and not (place == "loss" and not item.target.certain and node in rewarded)
        and not (place == "loss" and _is_copy(item, best.get((node, place, not detached)), detached=detached))
    ]


def _is_same_use(item: Placed, other: Placed) -> bool:
    """Of the same weight in the same target, on another way."""
    one, two = item.occurrence.passage, other.occurrence.passage
    weight = (one.factor, one.coefficients, one.divisors, one.unknown_factors, one.detached)
    return item.target is other.target and weight == (
        *(two.factor, two.coefficients, two.divisors, two.unknown_factors, two.detached),
    )


def _whichever_way(item: Placed) -> Placed:
    """Under what all ways share, where one of them is always taken: what else is added to a loss decides nothing about the penalty."""
    if len(item.ways) < 2:
        return item
    condition = united(item.ways)
    if condition is None:
        return item
    passage = replace(item.occurrence.passage, condition=condition)
    return replace(item, occurrence=replace(item.occurrence, passage=passage))


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
    chosen = replace(chosen, ways=(*item.ways, *other.ways)[:MAX_WAYS] if _is_same_use(item, other) else chosen.ways)
    if item.occurrence.passage.divided_by_spread or other.occurrence.passage.divided_by_spread:
        passage = replace(chosen.occurrence.passage, divided_by_spread=True)
        chosen = replace(chosen, occurrence=replace(chosen.occurrence, passage=passage))
    if not (
        item.occurrence.passage.averages and other.occurrence.passage.averages
    ):  # one of them is a baseline, or for the logs
        passage = replace(chosen.occurrence.passage, averages=())
        chosen = replace(chosen, occurrence=replace(chosen.occurrence, passage=passage))
    if not item.by_group_std and not other.by_group_std:
        return chosen
    if bool(item.by_group_std) != bool(other.by_group_std) and _exclude_each_other(item, other):
        passage = replace(chosen.occurrence.passage, condition=_shared_condition(item, other))
        chosen = replace(chosen, occurrence=replace(chosen.occurrence, passage=passage))
    item, other = _without_intermediate(item, other), _without_intermediate(other, item)
    return replace(
        chosen,
        by_group_std=(*item.by_group_std, *other.by_group_std)[:MAX_WAYS],
        not_by_group_std=(*item.not_by_group_std, *other.not_by_group_std)[:MAX_WAYS],
    )


def _without_intermediate(item: Placed, other: Placed) -> Placed:
    """A reward that is only on the way to the advantages tells nothing of what they are divided by."""
    if item.by_group_std or not other.by_group_std or item.target is other.target:
        return item
    wider = parts_of(item.target.condition) < parts_of(other.target.condition)
    if wider or item.target.node not in reachable([other.target.node]):
        return item
    return replace(item, not_by_group_std=())


def _where_not_divided(item: Placed, intermediate: list[Target]) -> Placed:
    """What is divided in a branch only is used as it was where that is not entered."""
    if not item.by_group_std or item.not_by_group_std:
        return item
    under = parts_of(item.target.condition)
    for target in intermediate:
        wider = target.place == item.place and parts_of(target.condition) < under
        if wider and item.occurrence.node in reachable([target.node]):
            inner = parts_of(item.occurrence.passage.condition) - under
            passage = replace(item.occurrence.passage, condition=both((target.condition, *sorted(inner, key=str))))
            occurrence = replace(item.occurrence, passage=passage)
            return replace(item, occurrence=occurrence, not_by_group_std=(target.condition,))
    return item


def _with_ways(item: Placed) -> Placed:
    """Whether this way from the formula to its place leads through a division by the spread of a group."""
    passage = item.occurrence.passage
    item = replace(item, ways=(passage.condition,))
    if passage.group_std == NEVER:
        return replace(item, not_by_group_std=(passage.condition,))
    divided = both((passage.condition, passage.group_std))
    return replace(
        item, by_group_std=(divided,), not_by_group_std=() if passage.group_std == ALWAYS else (passage.condition,)
    )


def _shared_condition(item: Placed, other: Placed) -> Condition:
    """What both ways hang on: the penalty is there whichever of the two is taken."""
    shared = parts_of(item.occurrence.passage.condition) & parts_of(other.occurrence.passage.condition)
    return both(sorted(shared, key=str)) if shared else ALWAYS


def _exclude_each_other(item: Placed, other: Placed) -> bool:
    if item.target is not other.target:
        return False
    return not can_hold(both((item.occurrence.passage.condition, other.occurrence.passage.condition)))


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
    is_returned = (
        target.what.startswith("returned by") and place == "unknown" and bool(passage.coefficients) and not called
    )
    return Placed(occurrence, target, place, False, is_returned=is_returned and company)
