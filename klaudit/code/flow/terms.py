"""A sink taken apart: which KL formulas it is a sum of, each with its coefficient, its sign, and what it passed through.

The walk goes down from the sink through what is linear (sums, scaling, averages, masks), through branches with the conditions they hang
on, and stops at the first formula in log pi and log pi_ref.  What is mixed with other tensors in a way that is not linear is no penalty.

What multiplies or divides a formula is its coefficient: a number, a knob by its name, or something of which nothing is known, which is
never taken for one.  Two things are no coefficient: a mask (by name or comparison; lengths and counts of tokens too), and what is not
known but scales the rest of the loss or reward as well, since it does not weigh the penalty against that.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from klaudit.code import names
from klaudit.code.conditions import ALWAYS, NEVER, Condition, both, either, negated
from klaudit.code.evaluation.dual import known_number
from klaudit.code.flow.passage import Passage, core, flattened
from klaudit.code.flow.sums import addends
from klaudit.code.graph import Graph, Node, Op
from klaudit.code.roles import FOREIGN, POLICY

MAX_VISITS = 3_000
_MOST_AVERAGES = 8
_NEAR = 4  # how far below a quotient a spread is looked for
START = Passage()
_SINGLE = frozenset({Op.POW})


class Occurrence(Struct, frozen=True):
    """One formula and how it reaches the sink."""

    node: Node
    passage: Passage


class _Walk(Struct):
    graph: Graph
    visits: int = 0
    seen: set[tuple[Node, tuple[Node, ...], float, Condition, bool]] = field(default_factory=set)


def occurrences(
    sink: Node, graph: Graph, start: Passage = START, walked: set[Node] | None = None
) -> Iterator[Occurrence]:
    """Every formula that the sink holds.  `walked` collects the nodes on the way."""
    walk = _Walk(graph)
    waiting = [(sink, start)]
    while waiting and walk.visits < MAX_VISITS:
        node, passage = waiting.pop()
        if not node.bears_kl or passage.condition == NEVER:
            continue
        key = (node, passage.coefficients, passage.factor, passage.condition, passage.detached)
        if key in walk.seen:
            continue
        walk.seen.add(key)
        walk.visits += 1
        # what a detached copy holds may be trained on elsewhere, and what went into the unknown be seen before it
        if walked is not None and not passage.detached and not passage.through_unknown:
            walked.add(node)
        passage = _stepped(node, passage, graph)
        below = list(_below(node, passage, graph))
        if below == [(node, passage)]:
            yield Occurrence(node, passage)
        else:
            waiting.extend(reversed(below))


def _stepped(node: Node, passage: Passage, graph: Graph) -> Passage:
    """Note the node's place, and whether a name on the way says that this is a reward."""
    bound = graph.bound_to.get(node, ())
    sites = [site for _, site in reversed(bound)]
    if node.site is not None and node.op is not Op.CHOICE:  # a choice is written nowhere, its arms are
        sites.append(node.site)
    path = (*passage.path, *(site for site in sites if site not in passage.path))
    reward = passage.named_reward or next((name for name, _ in bound if names.is_reward(name)), "")
    is_loss = any(names.is_loss(name) for name, _ in bound)
    return replace(
        passage, path=path, named_reward=reward, weighted_by_policy=passage.weighted_by_policy and not is_loss
    )


def _below(node: Node, passage: Passage, graph: Graph) -> Iterator[tuple[Node, Passage]]:
    """What a node passes on of the KL in it; the node itself where it is a formula."""
    op = node.op
    if op is Op.NEG:
        yield node.args[0], replace(passage, factor=-passage.factor)
    elif op is Op.REDUCE and not node.args[0].vocabulary:
        over_last = node.text == "sum" and node.axis in (-1, 2)
        summed_last = passage.summed_last or over_last
        yield node.args[0], replace(passage, summed_last=summed_last, averages=_with(passage, node))
    elif op is Op.DETACH:
        yield node.args[0], replace(passage, detached=True)
    elif op is Op.CHOICE:
        yield from _arms(node, passage)
    elif op is Op.STACK:
        for arg in node.args:
            yield arg, passage
    elif op is Op.MUL:
        yield from _factors(node, passage, graph)
    elif op is Op.DIV:
        yield from _quotient(node, passage)
    elif op is Op.ADD:
        yield from addends(node, passage, graph)
    elif op is Op.OPAQUE:
        yield from _unfollowed(node, passage)
    elif node.is_pure:
        if op is not Op.COMPARE:
            yield node, passage
    elif op in (Op.MIN, Op.MAX) and ([arg.is_pure for arg in node.args if arg.bears_kl] == [True] or _is_hinge(node)):
        yield node, passage  # which of the two counts, nobody knows
    elif op in (Op.MIN, Op.MAX, Op.CLAMP):
        for arg in node.args:
            yield arg, replace(passage, beside_others=True)
    elif op is Op.WHERE:
        for arg in node.args[1:]:
            yield arg, passage


def _with(passage: Passage, average: Node) -> tuple[Node, ...]:
    return (*passage.averages, average) if len(passage.averages) < _MOST_AVERAGES else passage.averages


def _is_hinge(node: Node) -> bool:
    """`relu(d - margin)`: a penalty above something that is not known."""
    given = next((arg for arg in node.args if not arg.is_scalar), node)
    others = [part for part in given.args if not part.is_pure]
    return (
        any(arg.op is Op.NUMBER and not arg.number for arg in node.args)
        and given.op is Op.ADD
        and all(not part.bears_kl and not part.live and not names.speaks_of_reward(_described(part)) for part in others)
    )


def _arms(node: Node, passage: Passage) -> Iterator[tuple[Node, Passage]]:
    """Each arm under its condition; one for all where they only average the same thing in different ways."""
    if len(node.args) > 1 and len({core(arm) for arm in node.args}) == 1:
        yield node.args[0], passage
        return
    earlier: list[Condition] = []
    for condition, arm in zip(node.conditions, node.args, strict=True):
        yield arm, replace(passage, condition=both((passage.condition, condition, *earlier)))
        earlier.append(negated(condition))


def _factors(node: Node, passage: Passage, graph: Graph) -> Iterator[tuple[Node, Passage]]:
    sign, parts = flattened(node)
    knobs = [part for part in parts if part.is_scalar]
    rest = [part for part in parts if not part.is_scalar]
    factor, coefficients = passage.factor * sign, list(passage.coefficients)
    for knob in knobs:
        if knob.op is Op.NUMBER:
            factor *= knob.number or 0.0
        elif knob.op is Op.DIV and knob.args[0].op is Op.NUMBER:  # -1 / n
            factor *= knob.args[0].number or 0.0
            passage = replace(passage, divisors=(*passage.divisors, knob.args[1]))
        elif knob.op is not Op.MASK:
            coefficients.append(knob)
    if factor == 0:
        return  # switched off on this branch
    if (
        sign > 0
        and len(rest) == 1
        and rest[0].is_pure
        and rest[0].op in _SINGLE
        and all(knob.op is Op.NUMBER for knob in knobs)
    ):
        yield node, passage  # 0.5 * d**2: the number is part of the formula
        return
    passage = replace(passage, factor=factor, coefficients=tuple(coefficients))
    bearing = [part for part in rest if part.bears_kl]
    others = [part for part in rest if not part.bears_kl]
    spreads = [part for part in bearing if part.op is Op.POW and (known_number(part.args[1]) or 0.0) < 0]
    if spreads and len(bearing) > len(spreads):  # multiplied by one over its own spread
        for part in bearing:
            if part not in spreads:
                yield part, _divided_by_spread(passage, spreads)
    elif len(rest) == 1:
        yield rest[0], passage
    elif all(part.is_pure for part in rest):
        formula = node if len(rest) == len(parts) and sign > 0 else graph.whole_product(rest, node.site)
        yield formula, passage
    elif bearing and all(part.is_pure for part in bearing) and not _is_of_policy_gradient(others):
        known = [part for part in rest if part.is_pure]
        unknown = tuple(part for part in others if not part.is_pure)
        passage = replace(
            passage,
            unknown_factors=(*passage.unknown_factors, *unknown),
        )
        yield (graph.whole_product(known, node.site) if len(known) > 1 else known[0]), passage
    elif len(bearing) == 1:
        policy = any(part.live or _is_policy_weight(part) for part in others)
        foreign = tuple(part for part in others if part.roles & FOREIGN)
        mixed = bool(bearing[0].roles & FOREIGN) or bool(foreign)
        yield (
            bearing[0],
            replace(
                passage,
                weighted_by_policy=passage.weighted_by_policy or (policy and mixed),
                averages=() if policy and mixed else passage.averages,
                unknown_factors=(*passage.unknown_factors, *foreign),
            ),
        )


def _is_of_policy_gradient(others: list[Node]) -> bool:
    """What multiplies a KL is the policy's own ratio or log-probability with an advantage, not a weight of the tokens."""
    return any(map(_is_policy_weight, others)) and any(names.speaks_of_reward(_described(part)) for part in others)


def _is_policy_weight(node: Node) -> bool:
    return bool(node.roles & POLICY) and node.live


def _described(node: Node) -> str:
    while node.args and node.op is not Op.ATOM:
        node = next((arg for arg in node.args if arg.roles & FOREIGN), node.args[0])
    return node.text or node.op.name.lower()


def _quotient(node: Node, passage: Passage) -> Iterator[tuple[Node, Passage]]:
    numerator, denominator = node.args
    while denominator.op is Op.NEG:
        denominator, passage = denominator.args[0], replace(passage, factor=-passage.factor)
    if denominator.is_scalar:
        number = known_number(denominator)
        if denominator.op is Op.NUMBER and numerator.is_pure and numerator.op in _SINGLE:
            yield node, passage  # d**2 / 2: the number is part of the formula
        elif number is not None and denominator.op is not Op.SCALAR:
            yield numerator, replace(passage, factor=passage.factor / number if number else passage.factor)
        else:
            yield numerator, replace(passage, divisors=(*passage.divisors, denominator))
    elif numerator.bears_kl:
        if any(map(_is_spread, _near(denominator))):
            yield numerator, _divided_by_spread(passage, [denominator])
        elif node.is_pure:
            yield node, passage
        else:
            yield numerator, replace(passage, unknown_divisors=(*passage.unknown_divisors, denominator))


def _is_spread(node: Node) -> bool:
    return node.op is Op.OPAQUE and node.text == "std"


def _divided_by_spread(passage: Passage, spreads: list[Node]) -> Passage:
    found = [passage.group_std, *(_is_of_groups(spread, 0) for spread in spreads)]
    kept = [condition for condition in found if condition != NEVER]
    return replace(passage, divided_by_spread=True, group_std=either(kept) if kept else NEVER)


def _is_of_groups(node: Node, depth: int) -> Condition:
    """When a spread is one a row, along an axis that is not the first, as the samples of a prompt have it; whitening has one a batch."""
    if _is_spread(node):
        return NEVER if node.axis in (None, 0) else ALWAYS
    if depth > _NEAR:
        return NEVER
    found: list[Condition] = []
    earlier: list[Condition] = []
    for at, arg in enumerate(node.args):
        inner = _is_of_groups(arg, depth + 1)
        if node.op is Op.CHOICE:
            inner = both((inner, node.conditions[at], *earlier))
            earlier.append(negated(node.conditions[at]))
        found.append(inner)
    kept = [condition for condition in found if condition != NEVER]
    return either(kept) if kept else NEVER


def _near(node: Node) -> list[Node]:
    found, waiting = [], [(node, 0)]
    while waiting:
        part, depth = waiting.pop()
        found.append(part)
        if depth < _NEAR:
            waiting.extend((arg, depth + 1) for arg in part.args)
    return found


def is_external(node: Node) -> bool:
    """A KL computed by a function whose code is not in the tree."""
    return node.op is Op.OPAQUE and names.speaks_of_kl(node.text) and not any(arg.bears_kl for arg in node.args)


def _unfollowed(node: Node, passage: Passage) -> Iterator[tuple[Node, Passage]]:
    """A call that was not followed: linear where its name says that it averages or gathers, else nothing is known."""
    if node.text in ("std", "max", "min", "count", "loss"):
        return
    if is_external(node):
        yield node, passage
        return
    linear = names.is_linear_call(node.text)
    if linear:
        passage = replace(passage, averages=_with(passage, node))
    for arg in node.args:
        if arg.bears_kl:
            yield arg, passage if linear else replace(passage, through_unknown=node.text)
