"""einsum: a product of its operands, summed over the axes that the result does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from klaudit.code.graph import Graph, Node, Op, Site
from klaudit.code.interpreter.picking import picked, without_one_hot
from klaudit.code.values import Arguments, Literal, Value


def contracted(graph: Graph, arguments: Arguments, as_node: Callable[[Value | None], Node], site: Site) -> Node | None:
    """What einsum gives of a log-probability and others; None where none is among them, or what it does is not seen."""
    equation, *operands = arguments.positional or [Literal(None)]
    if not isinstance(equation, Literal) or not isinstance(equation.value, str):
        return None
    nodes = [as_node(operand) for operand in operands]
    return _summed(graph, equation.value, nodes, site) if any(node.roles and node.is_pure for node in nodes) else None


def _summed(graph: Graph, equation: str, operands: Sequence[Node], site: Site) -> Node | None:
    """None where the equation does not name every axis or an axis is taken twice."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    axes = [part.replace("...", "") for part in given.split(",")]
    if not arrow or len(axes) != len(operands) or any(len(set(part)) < len(part) for part in axes):
        return None
    product = graph.whole_product(operands, site)
    summed = {letter for part in axes for letter in part} - set(result)
    of_vocabulary = {part[-1:] for part, operand in zip(axes, operands, strict=True) if operand.vocabulary}
    if len(of_vocabulary) > 1:
        return None
    if of_vocabulary & summed:
        others = without_one_hot(product)
        whole = None if others is None else graph.whole_product(others, site)
        product = (
            picked(graph, whole, site)
            if whole is not None and whole.vocabulary
            else graph.make(Op.REDUCE, (product,), site, "sum", -1)
        )
    over_tokens = summed - of_vocabulary
    return graph.make(Op.REDUCE, (product,), site, "sum", 1 if result else None) if over_tokens else product
