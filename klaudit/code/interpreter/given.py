"""What an operation of the whitelist works on, and what it is: from that to a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from klaudit.code.graph import Graph, Node, Op, Site
from klaudit.code.values import Arguments, Literal, Value


class Given(Struct):
    """One application of an operation: the tensor it works on, the rest of the arguments as given and as tensors."""

    graph: Graph
    tensor: Node
    arguments: Arguments
    as_node: Callable[[Value | None], Node]
    site: Site

    def node(self, index: int, *names: str) -> Node | None:
        value = self.arguments.get(index, *names)
        return None if value is None or value == Literal(None) else self.as_node(value)

    def make(self, op: Op, *others: Node, text: str = "", axis: int | None = None) -> Node:
        return self.graph.make(op, (self.tensor, *others), self.site, text, axis)

    def text(self, index: int, *names: str) -> str:
        value = self.arguments.get(index, *names)
        return value.value if isinstance(value, Literal) and isinstance(value.value, str) else ""

    def axis(self, index: int) -> int | None:
        """The axis of a reduction; None where it goes over all."""
        node = self.arguments.get(index, "dim", "axis")
        if isinstance(node, Node) and node.op is Op.NUMBER and node.number is not None:
            return int(node.number)
        return None if node is None or node == Literal(None) else 1  # an axis that is not known is not the vocabulary's


Meaning: TypeAlias = Callable[[Given], Node]
