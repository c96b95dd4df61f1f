"""Sums taken apart: addends that need each other are one formula, others are terms of their own."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from klaudit.code.flow.passage import Passage, is_aggregation
from klaudit.code.flow.torn import torn, without_shared_factors
from klaudit.code.graph import Graph, Node, Op, Site, reachable
from klaudit.code.roles import OLD, POLICY, REFERENCE


def addends(node: Node, passage: Passage, graph: Graph) -> Iterator[tuple[Node, Passage]]:
    """A sum: addends with the same knobs are one formula where they need each other, others are terms of their own."""
    incoming = passage
    parts = list(_signed(node, 1.0))
    kept = [(factor, part) for factor, part in parts if not _is_baseline(part, parts)]
    whole = node if len(kept) == len(parts) else None
    if whole is None:
        parts, passage = kept, replace(passage, centred=True)
    impure = [part for _, part in parts if not part.is_pure]
    if impure:
        passage = _joined(passage, node.site)
    if any(part.live and not part.is_pure and not part.bears_kl for _, part in parts):
        passage = replace(
            passage, weighted_by_policy=False, beside_gradient=True
        )  # what it is added to is a loss already
    groups: dict[tuple[str, ...], list[tuple[float, Node]]] = {}
    for factor, part in parts:
        if (part.is_pure and part.roles) or part.op is Op.NUMBER:
            groups.setdefault(_knobs_of(part), []).append((factor, part))
    if together := torn(parts, groups.values(), graph):
        yield _as_one(together, parts, node, incoming, graph)
        taken = {part for _, part in together}
        parts = [(factor, part) for factor, part in parts if part not in taken]
        groups = {knobs: group for knobs, group in groups.items() if taken.isdisjoint(part for _, part in group)}
    for factor, part in parts:
        if not part.is_pure and part.bears_kl:
            yield part, replace(passage, factor=passage.factor * factor)
    for group in groups.values():
        yield from _grouped(group, parts, whole, passage, graph, node.site)


def _joined(passage: Passage, site: Site | None) -> Passage:
    """Below a sum with others: what is not known above it scales them all, and so does what the whole loss is divided by."""
    divisors = passage.divisors if passage.beside_others else ()
    return replace(
        passage,
        beside_others=True,
        beside_gradient=False,
        joined_at=site,
        divisors=divisors,
        averages=(),
        unknown_factors=(),
        unknown_divisors=(),
    )


def _as_one(
    together: list[tuple[float, Node]], parts: list[tuple[float, Node]], whole: Node, passage: Passage, graph: Graph
) -> tuple[Node, Passage]:
    """The addends that make one formula, beside the others of the sum."""
    if any(part not in together for part in parts if part[1].roles):
        passage = _joined(passage, whole.site)
    one = without_shared_factors(together, graph)
    if one.shared:
        passage = replace(passage, unknown_factors=(*passage.unknown_factors, *one.shared))
    elif len(together) == len(parts):
        return whole, passage
    return graph.signed_sum(one.addends, whole.site), passage


def _is_baseline(part: Node, parts: list[tuple[float, Node]]) -> bool:
    """A mean of another addend, subtracted from it: it has no gradient of its own in expectation."""
    others = {other for _, other in parts if other is not part}
    inner, averaged = part, False
    while inner not in others:
        if averaged and inner.op is Op.ADD and any(below in others for _, below in _signed(inner, 1.0)):
            return True
        averaged = averaged or is_aggregation(inner)
        below = [arg for arg in inner.args if arg.bears_kl]
        if len(below) != 1 or not (is_aggregation(inner) or inner.op in (Op.NEG, Op.MUL, Op.DIV)):
            return False
        inner = below[0]
    return averaged


def _signed(node: Node, factor: float) -> Iterator[tuple[float, Node]]:
    waiting = [(factor, node)]
    count = 0
    while waiting:
        sign, part = waiting.pop()
        if part.op is Op.ADD and count < 200:
            count += 1
            waiting.extend((sign, arg) for arg in reversed(part.args))
        elif part.op is Op.NEG:
            waiting.append((-sign, part.args[0]))
        else:
            yield sign, part


def _knobs_of(node: Node) -> tuple[str, ...]:
    """The knobs that multiply a node, looked for below averages and signs."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.op in (Op.REDUCE, Op.NEG, Op.DETACH):
            waiting.append(part.args[0])
        elif part.op is Op.MUL:
            waiting.extend(part.args)
        elif part.op is Op.DIV and part.args[1].is_scalar:
            waiting.append(part.args[0])
        elif part.is_scalar and part.op not in (Op.NUMBER, Op.MASK):
            found.append(part.text or repr(part.serial))
    return tuple(sorted(found))


def _grouped(
    group: list[tuple[float, Node]],
    parts: list[tuple[float, Node]],
    whole: Node | None,
    passage: Passage,
    graph: Graph,
    site: Site | None,
) -> Iterator[tuple[Node, Passage]]:
    """The formulas of addends with the same knobs; `whole` is the sum, where none of its addends was left out."""
    bearing = [(factor, part) for factor, part in group if _compares(part)]
    sides = 0
    for _, part in group:
        sides |= part.roles
    if not bearing and not (sides & REFERENCE and sides & (POLICY | OLD)):
        return
    members = {part for _, part in group}
    if any(part.roles and part not in members for _, part in parts):
        live = passage.beside_gradient
        passage = replace(_joined(passage, passage.joined_at or site), beside_gradient=live)
    if len(group) == 1 or (len(bearing) == 1 and _stands_alone(bearing[0][1], group)):
        factor, part = bearing[0]
        company = passage.beside_others
        if any(other is not part and other.roles for _, other in group):
            company, passage = True, replace(passage, unknown_factors=(), unknown_divisors=())
        yield part, replace(passage, factor=passage.factor * factor, beside_others=company)
    elif len(group) == len(parts) and whole is not None:
        yield whole, passage
    else:
        yield graph.signed_sum(group, site), passage


def _compares(part: Node) -> bool:
    """It sets the policy against the reference, and is not just one or the other of two references."""
    while part.op in (Op.NEG, Op.REDUCE, Op.DETACH):
        part = part.args[0]
    return any(map(_compares, part.args)) if part.op is Op.CHOICE else part.bears_kl


def _stands_alone(part: Node, group: list[tuple[float, Node]]) -> bool:
    """One addend that holds both sides is the formula, unless the rest of the group completes it (exp(-d) + d - 1)."""
    others = 0
    for _, other in group:
        if other is not part:
            others |= other.roles
    if others & REFERENCE or part.op in (Op.EXP, Op.EXPM1, Op.DETACH) or _is_cross_entropy(part):
        return False
    return part.op in (Op.REDUCE, Op.MUL, Op.CHOICE, Op.POW, Op.ABS, Op.DIV, Op.CLAMP) and all(
        other is part or other.op is Op.NUMBER or not other.roles & OLD or other.live for _, other in group
    )


def _is_cross_entropy(part: Node) -> bool:
    """A sum of p * log q over the vocabulary, with no difference in it: an entropy makes a divergence of it."""
    while part.op in (Op.REDUCE, Op.NEG):
        if part.op is Op.REDUCE and part.args[0].vocabulary:
            return not any(below.op is Op.ADD for below in reachable([part]))
        part = part.args[0]
    return False
