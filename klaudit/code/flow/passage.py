"""What lies between a sink and a formula, and what is left of a value below averages and scaling."""

from __future__ import annotations

from msgspec import Struct

from klaudit.code import names
from klaudit.code.conditions import ALWAYS, NEVER, Condition
from klaudit.code.graph import Node, Op, Site


class Passage(Struct, frozen=True):
    """What lies between the sink and the place the walk has reached."""

    factor: float = 1.0
    coefficients: tuple[Node, ...] = ()  # knobs that multiply
    divisors: tuple[Node, ...] = ()
    condition: Condition = ALWAYS
    detached: bool = False
    beside_others: bool = False  # it is added to something that is not a KL
    beside_gradient: bool = False  # which the policy's gradient flows through
    weighted_by_policy: bool = (
        False  # multiplied, with other tensors, by a ratio or a log-probability that carries gradient
    )
    # what multiplies or divides it and is no coefficient by its name; what scales the rest of the sum as well is none
    unknown_factors: tuple[Node, ...] = ()
    unknown_divisors: tuple[Node, ...] = ()
    divided_by_spread: bool = False
    centred: bool = False  # its mean over the group is subtracted
    group_std: Condition = NEVER  # when that spread is one of several, along an axis: of each group, not of the batch
    averages: tuple[Node, ...] = ()  # means on the way, from where it joins the reward down
    named_reward: str = ""
    through_unknown: str = ""
    summed_last: bool = False  # a sum over the last axis: of tokens, or of the vocabulary
    joined_at: Site | None = None  # the innermost sum with others
    path: tuple[Site, ...] = ()


def core(node: Node) -> Node:
    """What is left of a node below averages and scaling."""
    while True:
        below = [arg for arg in node.args if arg.bears_kl]
        scaling = node.op is Op.MUL or (node.op is Op.DIV and node.args[1].is_scalar)
        if len(below) != 1 or not (
            is_aggregation(node) or (scaling and all(arg.is_scalar or arg is below[0] for arg in node.args))
        ):
            return node
        node = below[0]


def is_aggregation(node: Node) -> bool:
    """An average or a sum over tokens, or a call that its name says is one."""
    return node.op is Op.REDUCE or (node.op is Op.OPAQUE and names.is_linear_call(node.text))


def flattened(node: Node) -> tuple[float, list[Node]]:
    """The factors of a product, and the sign that the minus signs in it make together."""
    sign, waiting = 1.0, [node]
    parts: list[Node] = []
    while waiting:
        part = waiting.pop()
        if part.op is Op.NEG:
            sign, part = -sign, part.args[0]
            waiting.append(part)
        elif part.op is Op.MUL and len(parts) + len(waiting) < 200:
            waiting.extend(reversed(part.args))
        else:
            parts.append(part)
    return sign, parts
