"""Addends that make one formula although something unknown multiplies some of them: `weights * exp(-d) + d - 1` is no k1.

A sum is taken apart into terms where each of them is something by itself.  An exponential of the log-ratio is not: it needs the linear
part beside it, and where a factor stands before one of the two, what they are together is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.code import names
from klaudit.code.evaluation.classify import classify
from klaudit.code.flow.passage import flattened, is_aggregation
from klaudit.code.graph import Graph, Node, Op, reachable
from klaudit.code.roles import OLD, POLICY, REFERENCE

Signed: TypeAlias = tuple[float, Node]
Unit: TypeAlias = Literal["fragment", "linear", "own"]

_BENT = frozenset({Op.EXP, Op.EXPM1, Op.LOG, Op.LOG1P})
_CHOICES = frozenset({Op.WHERE, Op.MIN, Op.MAX, Op.CLAMP, Op.CHOICE, Op.STACK, Op.OPAQUE})
_DEEPEST = 8
_FEWEST = 2  # units that a formula can be torn into


class Whole(Struct, frozen=True):
    """One formula: its addends, and the unknown factors that stand before all of them."""

    addends: tuple[Signed, ...]
    shared: tuple[Node, ...] = ()


class _Factors(Struct):
    """What a product is made of: what compares the two policies, known or mixed with what is not, and other tensors."""

    pure: list[Node]
    mixed: list[Node]
    unknown: list[Node]


def torn(parts: Sequence[Signed], groups: Iterable[Sequence[Signed]], graph: Graph) -> list[Signed]:
    """The addends that are one formula although factors tear it apart; none where each is a term of its own.

    `groups` are the addends that nothing unknown multiplies, those with the same knobs together.
    """
    units = [[signed] for signed in parts if signed[1].bears_kl and not signed[1].is_pure]
    units += [list(group) for group in groups]
    if sum(map(_compares, units)) < _FEWEST:
        return []
    kinds = [_kind(unit, graph) for unit in units]
    if "fragment" not in kinds or sum(kind != "own" for kind in kinds) < _FEWEST:
        return []
    kept = {part for unit, kind in zip(units, kinds, strict=True) if kind != "own" for _, part in unit}
    return [signed for signed in parts if signed[1] in kept]


def without_shared_factors(addends: Sequence[Signed], graph: Graph) -> Whole:
    """`w * exp(-d) + w * d` is w times something known."""
    taken = [_split(part) for _, part in addends]
    first = taken[0][1]
    if not first or any(set(unknown) != set(first) or not known for _, unknown, known in taken):
        return Whole(tuple(addends))
    parts = tuple(
        (factor * sign, graph.whole_product(known, part.site))
        for (factor, part), (sign, _, known) in zip(addends, taken, strict=True)
    )
    return Whole(parts, tuple(first)) if all(part.is_pure for _, part in parts) else Whole(tuple(addends))


def _split(part: Node) -> tuple[float, list[Node], list[Node]]:
    """The sign of a product, its unknown factors, and the others."""
    sign, factors = flattened(part)
    unknown = [factor for factor in factors if not factor.is_pure and not factor.bears_kl]
    return sign, unknown, [factor for factor in factors if factor not in unknown]


def _compares(unit: Sequence[Signed]) -> bool:
    """The addends together hold both sides."""
    roles = 0
    for _, part in unit:
        roles |= part.roles
    return bool(roles & REFERENCE) and bool(roles & (POLICY | OLD))


def _kind(unit: list[Signed], graph: Graph) -> Unit:
    if len(unit) == 1 and not unit[0][1].is_pure:
        return _kind_of_weighted(unit[0][1], graph)
    if not any(part.roles for _, part in unit):
        return "linear"  # a number
    return _kind_of_pure(graph.signed_sum(unit, None))


def _kind_of_weighted(part: Node, graph: Graph, depth: int = 0) -> Unit:
    factors = _factors(part)
    if depth > _DEEPEST or any(_is_of_reward(factor) for factor in factors.unknown):
        return "own"  # the policy's ratio to the reference, weighted by an advantage
    if factors.mixed:
        return _kind_of_mixed(factors.mixed, graph, depth)
    return _kind_of_pure(graph.whole_product(factors.pure, None)) if factors.pure else "own"


def _kind_of_mixed(mixed: list[Node], graph: Graph, depth: int) -> Unit:
    """What something unknown is an argument of: an exponential or a logarithm, or a choice between the known and the unknown."""
    if all(factor.op in _BENT for factor in mixed):
        return "fragment"
    if len(mixed) > 1 or mixed[0].op not in _CHOICES:
        return "own"
    kinds = {
        _kind_of_pure(arg) if arg.is_pure else _kind_of_weighted(arg, graph, depth + 1)
        for arg in mixed[0].args
        if arg.bears_kl
    }
    return "own" if "own" in kinds else "fragment" if "fragment" in kinds else "linear"


def _kind_of_pure(node: Node) -> Unit:
    if not node.bears_kl or node.vocabulary or any(part.vocabulary for part in reachable([node])):
        return "own"
    what = classify(node, {})
    if what is None or what.probability_weighted:
        return "own"
    if what.estimator == "unknown":
        return "fragment"
    return "linear" if what.estimator == "k1" else "own"


def _factors(node: Node) -> _Factors:
    """The factors of a product, looked for below signs, averages, and where the gradient ends; knobs and masks left out."""
    found = _Factors([], [], [])
    seen: set[Node] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        if part.op in (Op.NEG, Op.DETACH) or is_aggregation(part):
            waiting.append(part.args[0])
        elif part.op is Op.MUL or (part.op is Op.DIV and not part.args[1].bears_kl):
            waiting.extend(part.args)
        elif not part.bears_kl and not part.is_pure:
            found.unknown.append(part)
        elif not part.is_scalar:
            (found.pure if part.is_pure else found.mixed).append(part)
    return found


def _is_of_reward(node: Node) -> bool:
    return any(part.op is Op.ATOM and names.speaks_of_reward(part.text) for part in reachable([node]))
