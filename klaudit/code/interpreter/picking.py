"""The sampled token's entry: picked out of the vocabulary by gather, by an index or by a one-hot factor, before or after arithmetic."""

from __future__ import annotations

import ast

from klaudit.code import names
from klaudit.code.graph import Graph, Node, Op, Site, reachable

SAMPLED_TOKENS = "log-probability of the sampled tokens"
ONE_HOT = "one_hot"  # text of the factor that is 1 at the sampled token and 0 elsewhere
SORTED = "sorted"  # text of what was ordered along the vocabulary
MAX_PARTS = 400  # of an expression that is picked from entry by entry

_ENTRYWISE = frozenset(
    {
        Op.ADD, Op.NEG, Op.MUL, Op.DIV, Op.POW, Op.EXP, Op.EXPM1, Op.LOG, Op.LOG1P, Op.ABS, Op.SIGN, Op.SIGMOID, Op.LOGSIGMOID,
        Op.SOFTPLUS, Op.TANH, Op.CLAMP, Op.MIN, Op.MAX, Op.WHERE, Op.COMPARE, Op.DETACH, Op.KLDIV,
    }
)  # fmt: skip


def token_log_probability(graph: Graph, logits: Node, site: Site) -> Node:
    """The sampled token's log-probability under some logits, by whatever function it was picked."""
    if not logits.vocabulary or not logits.roles or logits.roles & (logits.roles - 1):
        return graph.make(Op.OPAQUE, (logits,), site, text="log-probability")
    source = next((part for part in reachable([logits]) if part.op is Op.ATOM), logits)
    made_by = f" ({source.reason})" if source.reason else ""
    reason = f"{SAMPLED_TOKENS} under {source.text or 'logits'}{made_by}"
    return graph.atom(logits.roles, source.text, reason, site, live=logits.live)


def picked(graph: Graph, tensor: Node, site: Site) -> Node:
    """The sampled token's entry of a tensor over the vocabulary; of one without a vocabulary the tensor itself."""
    if not tensor.vocabulary:
        return tensor
    parts = [part for part in reachable([tensor]) if part.vocabulary]
    entries: dict[Node, Node] = {}
    for part in parts if len(parts) <= MAX_PARTS else ():
        entry = _entry(graph, part, entries, site)
        if entry is not None:
            entries[part] = entry
    return entries.get(tensor) or graph.make(Op.OPAQUE, (tensor,), site, text="gather")


def _entry(graph: Graph, part: Node, entries: dict[Node, Node], site: Site) -> Node | None:
    """One part's entry, those below it known; None where it has none that is told by the token alone, as a logit has not."""
    if part.op is Op.LOGSOFTMAX:
        return token_log_probability(graph, part.args[0], site)
    if part.op is Op.SOFTMAX:
        return graph.make(Op.EXP, (token_log_probability(graph, part.args[0], site),), site)
    if part.op is Op.LOG and (source := _softmax_below(part.args[0])) is not None:
        atom = token_log_probability(graph, source.args[0], site)
        graph.from_log_of_softmax[atom] = part.site or site
        return atom
    if (logits := _normalised(part)) is not None:
        return token_log_probability(graph, logits, site)
    args = [entries.get(arg) if arg.vocabulary else arg for arg in part.args]
    known = [arg for arg in args if arg is not None]
    if len(known) < len(args):
        return None
    if part.op is Op.CHOICE:
        return graph.choice(zip(part.conditions, known, strict=True), part.site)
    return graph.make(part.op, known, part.site, part.text, part.axis) if part.op in _ENTRYWISE else None


def _softmax_below(node: Node) -> Node | None:
    """The softmax that a logarithm is taken of, with or without a small number added against log 0."""
    candidates = (node, *node.args) if node.op in (Op.ADD, Op.CLAMP, Op.MAX) else (node,)
    return next((candidate for candidate in candidates if candidate.op is Op.SOFTMAX), None)


def _normalised(node: Node) -> Node | None:
    """The logits of `logits - logsumexp(logits)`."""
    if node.op is not Op.ADD or node.args[1].op is not Op.NEG:
        return None
    total = node.args[1].args[0]
    return node.args[0] if total.op is Op.LOGSUMEXP and total.args[0] is node.args[0] else None


def without_one_hot(tensor: Node) -> list[Node] | None:
    """The other factors of a product with a one-hot factor; None where there is none."""
    factors: list[Node] = []
    waiting = [tensor]
    while waiting and len(factors) < MAX_PARTS:
        part = waiting.pop()
        if part.op is Op.MUL:
            waiting.extend(reversed(part.args))
        else:
            factors.append(part)
    others = [part for part in factors if part.text != ONE_HOT]
    return others if 0 < len(others) < len(factors) else None


def is_cut_of_sorted(index: ast.expr, owner: Node) -> bool:
    """`sorted[..., :k]`: the likeliest entries of what was ordered along the vocabulary."""
    last = index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else index
    return owner.text == SORTED and isinstance(last, ast.Slice) and (last.upper is not None or last.lower is not None)


def is_index_of_tokens(index: ast.expr, owner: Node) -> bool:
    """Whether an index picks one entry of the vocabulary a position.

    An index of the last axis does: after `...`, or the last of three (batch, position, token).  Of two, and alone, the last may pick
    positions: of what is over the vocabulary already two pick the token unless named otherwise; one does where it is named a token.
    """
    items = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    items = [item for item in items if not (isinstance(item, ast.Constant) and item.value is None)]
    if not items or isinstance(items[-1], ast.Slice | ast.Constant | ast.Compare | ast.UnaryOp):
        return False
    words = {word for part in ast.walk(items[-1]) for word in names.words(_spelled(part))}
    if names.are_of_a_mask(words):
        return False
    is_whole = isinstance(items[0], ast.Constant) and items[0].value is Ellipsis
    if len(items) > 2 or (len(items) == 2 and is_whole):
        return True
    if names.are_of_positions(words):
        return False
    if names.are_of_tokens(words):
        return owner.op is not Op.ATOM or len(items) == 2
    return len(items) == 2 and owner.op is not Op.ATOM and not isinstance(items[0], ast.Slice)


def _spelled(part: ast.AST) -> str:
    return part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
