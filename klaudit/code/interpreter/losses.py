"""Losses of libraries: of logits and labels, functions of a difference, kl_div."""

from __future__ import annotations

import math

from klaudit.code.graph import Node, Op
from klaudit.code.interpreter.given import Given, Meaning
from klaudit.code.interpreter.picking import picked, token_log_probability
from klaudit.code.values import Arguments, Literal


def cross_entropy(given: Given) -> Node:
    """Of logits: minus the log-probability of the labels."""
    if not given.tensor.vocabulary:
        return given.make(Op.OPAQUE, text="loss")
    return given.graph.negative(token_log_probability(given.graph, given.tensor, given.site), given.site)


def likelihood(given: Given) -> Node:
    """Of log-probabilities over the vocabulary: minus that of the labels; of logits as they are, nothing of the kind."""
    if not given.tensor.vocabulary:
        return given.make(Op.OPAQUE, text="loss")
    return given.graph.negative(picked(given.graph, given.tensor, given.site), given.site)


def classified(given: Given) -> Node:
    """A loss that asks how well a value tells two classes apart: of a log-ratio, that of a reward model and no penalty."""
    return given.make(Op.OPAQUE, text="loss")


def distance(bend: Meaning) -> Meaning:
    """A loss that is a function of a difference; the reduction is mean where none is given."""

    def meaning(given: Given) -> Node:
        difference = given.graph.difference(given.tensor, given.node(0, "target") or given.tensor, given.site)
        bent = bend(Given(given.graph, difference, Arguments([], {}), given.as_node, given.site))
        reduction = given.text(3, "reduction") or "mean"
        return bent if reduction == "none" else given.graph.make(Op.REDUCE, (bent,), given.site, reduction)

    return meaning


def huber(bound: tuple[int, str], *, divided: bool) -> Meaning:
    """0.5 * x**2 up to a bound and linear beyond it, with the slope that it has there; `divided` by the bound."""

    def meaning(given: Given) -> Node:
        graph, site = given.graph, given.site
        limit = given.node(*bound) or graph.number(1.0)
        difference = graph.difference(given.tensor, given.node(0, "target") or given.tensor, site)
        size = graph.make(Op.ABS, (difference,), site)
        cut = graph.make(Op.CLAMP, (size, graph.number(-math.inf), limit), site)
        half = graph.make(Op.MUL, (graph.number(0.5), graph.make(Op.POW, (cut, graph.number(2.0)), site)), site)
        bent = graph.difference(graph.make(Op.MUL, (cut, size), site), half, site)
        if divided:
            bent = graph.make(Op.DIV, (bent, limit), site)
        reduction = given.text(3 if divided else 1, "reduction") or "mean"
        return bent if reduction == "none" else graph.make(Op.REDUCE, (bent,), site, reduction)

    return meaning


def kl_div(given: Given) -> Node:
    """torch.nn.functional.kl_div(input, target): target * (log target - input); the reduction is mean where none is given."""
    target = given.node(0, "target")
    if target is None:
        return given.make(Op.OPAQUE, text="kl_div")
    value = given.arguments.keywords.get("log_target")
    log_target = isinstance(value, Literal) and value.value is True
    node = given.make(Op.KLDIV, target, text="log_target" if log_target else "")
    reduction = given.text(3, "reduction") or "mean"
    if reduction == "none":
        return node
    return given.graph.make(Op.REDUCE, (node,), given.site, "mean" if reduction == "mean" else "sum")
