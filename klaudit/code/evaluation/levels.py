"""Token level and sequence level: `exp(mean_t d) * exp(-d)` is a function of no single token's d, though each part is one of some d.

An average that is bent alone, as `(mean d)**2` is, is no estimator of a token; the sum over a sequence is one of the whole sequence.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Literal, TypeAlias

from klaudit.code.evaluation.dual import is_average
from klaudit.code.graph import Node, Op
from klaudit.code.roles import POLICY, REFERENCE

_LINEAR = frozenset({Op.ADD, Op.NEG, Op.REDUCE, Op.DETACH, Op.CHOICE, Op.STACK, Op.OPAQUE})
_BOUNDS = frozenset({Op.CLAMP, Op.MIN, Op.MAX})
_OF_TOKENS = (-1, 1)  # the axis of the tokens, with that of the samples before it

Level: TypeAlias = Literal["token", "mixed", "sequence", "average"]


def level_of(root: Node, parts: Set[Node]) -> Level:
    """Whose d a formula is a function of: a token's, that of a whole sequence (the sum over its tokens), an average, or several of these.

    A mean or sum over tokens counts where it is bent, or multiplies: a sum of terms is of each term's own level, and a weight pi/pi_old of
    the whole sequence is a matter of the classification.  `parts` are the nodes that count.
    """
    averages = _averages(parts)
    bent = _bent(averages, parts) if averages else set()
    if not bent:
        return "token"
    if _mixes(root, bent, parts):
        return "mixed"
    return "sequence" if all(_is_sum_of_tokens(part) for part in bent) else "average"


def _averages(parts: Set[Node]) -> set[Node]:
    """Averages of what compares policy and reference; those of one side where the other is averaged as well."""
    found = {part for part in parts if part.roles and is_average(part)}
    sides = {part.roles for part in found}
    single = (POLICY, REFERENCE) if {POLICY, REFERENCE} <= sides else ()
    return {part for part in found if part.bears_kl or part.roles in single}


def _is_sum_of_tokens(node: Node) -> bool:
    return node.op is Op.REDUCE and node.text == "sum" and node.axis in _OF_TOKENS


def _mixes(root: Node, bent: Set[Node], parts: Set[Node]) -> bool:
    above = _above(bent, parts)  # the average of a whole formula makes no level of its own
    seen: set[Node] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in seen or node not in parts or (is_average(node) and node not in above):
            continue
        if node.op is Op.ATOM and node.roles:
            return True
        seen.add(node)
        waiting.extend(node.args)
    return False


def _above(bent: Set[Node], parts: Set[Node]) -> set[Node]:
    """What some of the averages are computed into."""
    found: set[Node] = set()
    for node in sorted(parts, key=lambda part: part.serial):
        if any(arg in bent or arg in found for arg in node.args):
            found.add(node)
    return found - bent


def _bent(averages: Set[Node], parts: Set[Node]) -> set[Node]:
    """Averages to which something is done that is not linear in them."""
    averaging: set[Node] = set()  # averages, and what is linear in them
    waiting: list[Node] = []
    for node in sorted(parts, key=lambda part: part.serial):
        held = [arg for arg in node.args if arg in averaging]
        if held and not _is_linear(node):
            waiting += held
        elif held or node in averages:
            averaging.add(node)
    found: set[Node] = set()
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in seen or node not in averaging:
            continue
        seen.add(node)
        if node in averages:
            found.add(node)
        waiting.extend(node.args)
    return found


def _is_linear(node: Node) -> bool:
    """Bounds count as linear: what they do near the reference is a matter of the classification."""
    if node.op is Op.MUL:
        return any(arg.is_scalar for arg in node.args)
    if node.op in _BOUNDS:
        return all(arg.is_scalar for arg in node.args[1:])
    return node.op in _LINEAR or (node.op is Op.DIV and node.args[1].is_scalar)
