"""What a rewarded penalty is averaged over before it enters the reward."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.code import names
from klaudit.code.graph import Node, Op, reachable
from klaudit.code.result import Averaged

_OF_TOKENS = (-1, 1)  # the axis of the tokens, with that of the samples before it


def averaged_over(node: Node, on_the_way: Iterable[Node]) -> Averaged:
    """ "length" where each sequence has a mean of its own, "all" where nothing says so: one number for all that was given.

    `on_the_way` are the averages between the reward and the formula.  A mean over the vocabulary is none.
    """
    found = [part for part in (*reachable([node]), *on_the_way) if _is_over_tokens(part)]
    means = [part for part in found if part.text == "mean" or part.op is Op.OPAQUE]
    if not means:
        return ""
    each = all(part.axis in _OF_TOKENS and not _holds_another(part, found) for part in means)
    return "length" if each else "all"


def _is_over_tokens(node: Node) -> bool:
    """A reduction, or a function that its name says is a mean."""
    if not node.roles or not node.args or node.args[0].vocabulary:
        return False
    return node.op is Op.REDUCE or (node.op is Op.OPAQUE and names.is_mean(node.text.rpartition(".")[2]))


def _holds_another(node: Node, found: list[Node]) -> bool:
    """What it averages was summed or averaged over the tokens before."""
    below = set(reachable(node.args))
    return any(other in below for other in found)
