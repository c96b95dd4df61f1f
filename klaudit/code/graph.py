"""The value graph of a function: what each tensor is computed from, in one spelling, whatever the library and the style of the code.

Nodes are immutable and made through a Graph, children before parents, so that sorting by `serial` is an evaluation order and no walk
needs recursion.  Shapes are not kept: indexing, casting and reshaping give the node itself, and masks count as a factor of one.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from itertools import count
from operator import add, mul, neg, truediv

from msgspec import Struct

from klaudit.code.conditions import NEVER, Condition, either
from klaudit.code.roles import FOREIGN, OLD, POLICY, REFERENCE

MAX_NODES = 60_000
READ_OUT = "read out"  # text of a DETACH that leaves the tensors for plain numbers


class Op(Enum):
    NUMBER = auto()
    SCALAR = auto()  # a knob: its number is known only where a default is
    MASK = auto()
    ATOM = auto()
    ADD = auto()
    NEG = auto()
    MUL = auto()
    DIV = auto()
    POW = auto()
    EXP = auto()
    EXPM1 = auto()
    LOG = auto()
    LOG1P = auto()
    ABS = auto()
    SIGN = auto()
    SIGMOID = auto()
    LOGSIGMOID = auto()
    SOFTPLUS = auto()
    TANH = auto()
    CLAMP = auto()  # x, low, high
    MIN = auto()
    MAX = auto()
    WHERE = auto()  # condition, if true, if false
    COMPARE = auto()  # left, right; `text` is the operator
    DETACH = auto()  # `text` is READ_OUT or ""
    REDUCE = auto()  # `text` is sum or mean; `axis` says over what
    SOFTMAX = auto()
    LOGSOFTMAX = auto()
    LOGSUMEXP = auto()
    TOPK = auto()  # some entries of the vocabulary
    KLDIV = auto()  # input, target: target * (log target - input), element by element; `text` is "log_target" or ""
    CHOICE = auto()  # one argument a condition
    STACK = auto()
    OPAQUE = auto()  # a call that could not be followed


class Site(Struct, frozen=True):
    """Where something is written: a module (by its index in the program) and a syntax node."""

    module: int
    syntax: ast.AST


class Node:
    """One value.  `roles`: whose log-probabilities it depends on; `live`: a gradient reaches the policy through it;
    `vocabulary`: it still has the vocabulary axis."""

    __slots__ = (
        "args",
        "axis",
        "conditions",
        "live",
        "number",
        "op",
        "reason",
        "roles",
        "serial",
        "site",
        "text",
        "vocabulary",
    )

    def __init__(self, op: Op, args: tuple[Node, ...], serial: int, site: Site | None) -> None:
        self.op = op
        self.args = args
        self.serial = serial
        self.site = site
        self.number: float | None = None
        self.text = ""
        self.reason = ""
        self.axis: int | None = None
        self.conditions: tuple[Condition, ...] = ()
        self.roles = 0
        self.live = False
        self.vocabulary = False
        for arg in args:
            self.roles |= arg.roles
            self.live = self.live or arg.live
            self.vocabulary = self.vocabulary or arg.vocabulary

    @property
    def is_scalar(self) -> bool:
        """A number, a knob, a mask, or arithmetic of such: at most a coefficient."""
        return self.roles == 0

    @property
    def bears_kl(self) -> bool:
        """It compares the policy (now, or at rollout) with the reference."""
        return bool(self.roles & REFERENCE) and bool(self.roles & (POLICY | OLD))

    @property
    def is_pure(self) -> bool:
        return not self.roles & FOREIGN

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.text or self.number or ''} #{self.serial}>"


_MOST_FACTORS = 8  # before a sum that is divided by a count

_ARITHMETIC: dict[Op, Callable[..., float]] = {
    Op.NEG: neg,
    Op.ADD: add,
    Op.MUL: mul,
    Op.DIV: truediv,
    Op.POW: pow,
    Op.MAX: max,
    Op.MIN: min,
    Op.ABS: abs,
    Op.EXP: math.exp,
    Op.EXPM1: math.expm1,
    Op.LOG: math.log,
    Op.LOG1P: math.log1p,
    Op.TANH: math.tanh,
    Op.SIGN: lambda value: math.copysign(1.0, value) if value else 0.0,
    Op.CLAMP: lambda value, low, high: min(max(value, low), high),
    Op.DETACH: lambda value: value,
    Op.REDUCE: lambda value: value,
}


OVER_VOCABULARY = (None, -1, 2)  # axes of a reduction that takes the vocabulary in


_serials = count(1)  # one series for all graphs: a value that one function stores is read by another


class TooManyNodesError(RuntimeError):
    """A function grew past MAX_NODES."""


class Graph:
    """Makes nodes, with the few simplifications that make different spellings the same graph."""

    def __init__(self) -> None:
        self._size = 0
        self._numbers: dict[float, Node] = {}
        self.mask = self._new(Op.MASK, (), None)
        self.bound_to: dict[Node, list[tuple[str, Site]]] = {}
        self.from_log_of_softmax: dict[Node, Site] = {}
        self._parts: dict[tuple[tuple[float, int], ...], Node] = {}

    def _new(self, op: Op, args: tuple[Node, ...], site: Site | None) -> Node:
        self._size += 1
        if self._size > MAX_NODES:
            raise TooManyNodesError(f"more than {MAX_NODES} values in one function")
        return Node(op, args, next(_serials), site)

    def number(self, value: float) -> Node:
        if value not in self._numbers:
            node = self._new(Op.NUMBER, (), None)
            node.number = value
            self._numbers[value] = node
        return self._numbers[value]

    def scalar(self, text: str, number: float | None = None, site: Site | None = None) -> Node:
        node = self._new(Op.SCALAR, (), site)
        node.text, node.number = text, number
        return node

    def atom(
        self,
        role: int,
        text: str,
        reason: str,
        site: Site | None = None,
        *,
        live: bool = True,
        vocabulary: bool = False,
    ) -> Node:
        node = self._new(Op.ATOM, (), site)
        node.roles, node.text, node.reason, node.vocabulary = role, text, reason, vocabulary
        node.live = live and role == POLICY
        return node

    def bind(self, node: Node, name: str, site: Site) -> None:
        """Remember a name that a value was given (or "" for the call that gave it) and where, for messages and for what the name says."""
        self.bound_to.setdefault(node, []).append((name, site))

    def make(
        self, op: Op, args: Sequence[Node], site: Site | None = None, text: str = "", axis: int | None = None
    ) -> Node:
        simple = self._simplified(op, args)
        if simple is not None:
            return simple
        node = self._new(op, tuple(args), site)
        node.text, node.axis = text, axis
        if op is Op.COMPARE or op is Op.DETACH or op is Op.SIGN:
            node.live = False
        if op is Op.REDUCE and axis in OVER_VOCABULARY:
            node.vocabulary = False
        return node

    def _simplified(self, op: Op, args: Sequence[Node]) -> Node | None:
        """Masks drop out; numbers fold; a detached value is not detached again."""
        first = args[0]
        if op is Op.MUL:
            if first.op is Op.MASK or (first.number == 1.0 and first.op is Op.NUMBER):
                return args[1]
            if args[1].op is Op.MASK or (args[1].number == 1.0 and args[1].op is Op.NUMBER):
                return first
        elif op is Op.ADD:
            if first.op is Op.NUMBER and first.number == 0.0:
                return args[1]
            if args[1].op is Op.NUMBER and args[1].number == 0.0:
                return first
        elif op is Op.DIV and args[1].op is Op.MASK:
            return self._divided_by_count(first)
        elif op is Op.DETACH and not first.live:
            return first
        if all(arg.op is Op.MASK or arg.op is Op.NUMBER for arg in args):
            if any(arg.op is Op.MASK for arg in args):
                return self.mask
            return self._folded(op, [arg.number or 0.0 for arg in args])
        return None

    def _divided_by_count(self, node: Node, depth: int = 0) -> Node:
        """A sum over tokens, whatever it is multiplied by, by their number is their mean; anything else by a mask or a length stays."""
        if depth < _MOST_FACTORS and (
            node.op is Op.NEG or (node.op is Op.MUL and any(arg.is_scalar for arg in node.args))
        ):
            args = tuple(arg if arg.is_scalar else self._divided_by_count(arg, depth + 1) for arg in node.args)
            return node if args == node.args else self.make(node.op, args, node.site)
        if node.op is not Op.REDUCE or node.text != "sum" or node.args[0].vocabulary or not node.roles:
            return node
        return self.make(Op.REDUCE, node.args, node.site, "mean", node.axis)

    def _folded(self, op: Op, values: list[float]) -> Node | None:
        rule = _ARITHMETIC.get(op)
        try:
            value = None if rule is None else rule(*values)
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        return self.number(value) if isinstance(value, float) and math.isfinite(value) else None

    def negative(self, node: Node, site: Site | None = None) -> Node:
        return node.args[0] if node.op is Op.NEG else self.make(Op.NEG, (node,), site)

    def difference(self, left: Node, right: Node, site: Site | None = None) -> Node:
        return self.make(Op.ADD, (left, self.negative(right, site)), site)

    def sum(self, nodes: Sequence[Node], site: Site | None = None) -> Node:
        total = nodes[0]
        for node in nodes[1:]:
            total = self.make(Op.ADD, (total, node), site)
        return total

    def signed_sum(self, parts: Sequence[tuple[float, Node]], site: Site | None) -> Node:
        """The sum of some addends of a larger one; the same addends give the same node."""
        key = tuple(sorted((factor, part.serial) for factor, part in parts))
        if key not in self._parts:
            self._parts[key] = self.sum([part if factor > 0 else self.negative(part) for factor, part in parts], site)
        return self._parts[key]

    def whole_product(self, parts: Sequence[Node], site: Site | None) -> Node:
        """The product of some factors of a larger one; the same factors give the same node."""
        key = (*((0.0, part.serial) for part in parts),)
        if key not in self._parts:
            total = parts[0]
            for part in parts[1:]:
                total = self.make(Op.MUL, (total, part), site)
            self._parts[key] = total
        return self._parts[key]

    def choice(self, arms: Iterable[tuple[Condition, Node]], site: Site | None = None) -> Node:
        """The node of the first arm whose condition holds.  Arms that are the same node are one."""
        kept: list[tuple[Condition, Node]] = []
        for condition, node in arms:
            if condition == NEVER:
                continue
            if kept and kept[-1][1] is node:
                kept[-1] = (either((kept[-1][0], condition)), node)
            else:
                kept.append((condition, node))
        if not kept:
            return self.number(0.0)
        if all(node is kept[0][1] for _, node in kept):
            return kept[0][1]
        if self.mask in (nodes := {node for _, node in kept}) and nodes <= {
            self.mask,
            self.number(0.0),
            self.number(1.0),
        }:
            return self.mask
        chosen = self._new(Op.CHOICE, tuple(node for _, node in kept), site)
        chosen.conditions = tuple(condition for condition, _ in kept)
        return chosen

    def guarded(self, condition: Condition, node: Node) -> Node:
        """The node, where the condition holds; nothing elsewhere (the code raises or leaves)."""
        chosen = self._new(Op.CHOICE, (node,), node.site)
        chosen.conditions = (condition,)
        return chosen


def reachable(roots: Iterable[Node]) -> list[Node]:
    """The roots and all that they are computed from, children first."""
    seen: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(node.args)
    return sorted(seen, key=lambda node: node.serial)
