"""Token level and sequence level: `exp(mean_t d) * exp(-d)` is a function of no single token's d, though each part is one of some d."""

from __future__ import annotations

from collections.abc import Set

from klaudit.code.evaluation.dual import is_average
from klaudit.code.graph import Node, Op

_LINEAR = frozenset({Op.ADD, Op.NEG, Op.REDUCE, Op.DETACH, Op.CHOICE, Op.STACK, Op.OPAQUE})


def mixes_levels(root: Node, parts: Set[Node]) -> bool:
    """A mean or sum over tokens of what compares policy and reference is bent, or multiplies, beside what is taken token by token.

    `parts` are the nodes that count.  A sum of both is a sum of terms, each of its own level; a weight pi/pi_old of the whole sequence
    is a matter of the classification.
    """
    bent = _bent_averages(parts) if any(is_average(part) and part.bears_kl for part in parts) else set()
    if not bent:
        return False
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


def _bent_averages(parts: Set[Node]) -> set[Node]:
    """Averages to which something is done that is not linear in them."""
    averaging: set[Node] = set()  # averages, and what is linear in them
    waiting: list[Node] = []
    for node in sorted(parts, key=lambda part: part.serial):
        held = [arg for arg in node.args if arg in averaging]
        if held and not _is_linear(node):
            waiting += held
        elif held or (is_average(node) and node.bears_kl):
            averaging.add(node)
    found: set[Node] = set()
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in seen or node not in averaging:
            continue
        seen.add(node)
        if is_average(node):
            found.add(node)
        waiting.extend(node.args)
    return found


def _is_linear(node: Node) -> bool:
    if node.op is Op.MUL:
        return any(arg.is_scalar for arg in node.args)
    return node.op in _LINEAR or (node.op is Op.DIV and node.args[1].is_scalar)
