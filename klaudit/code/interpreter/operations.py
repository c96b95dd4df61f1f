"""The whitelist: what library functions, tensor methods and their in-place and other-library twins mean in the value graph.

An operation gets the tensor it works on, the other arguments, and where it stands.  What is not listed is opaque.
"""

from __future__ import annotations

from klaudit.code import names
from klaudit.code.graph import OVER_VOCABULARY, READ_OUT, Node, Op
from klaudit.code.interpreter.given import Given, Meaning
from klaudit.code.interpreter.losses import classified, cross_entropy, distance, huber, kl_div, likelihood
from klaudit.code.interpreter.picking import ONE_HOT, SORTED, picked, without_one_hot
from klaudit.code.roles import FOREIGN
from klaudit.code.values import Literal, Path, Value


def _unary(op: Op) -> Meaning:
    return lambda given: given.make(op)


def _same(given: Given) -> Node:
    return given.tensor


def _detached(given: Given) -> Node:
    return given.make(Op.DETACH)


def _read_out(given: Given) -> Node:
    return given.make(Op.DETACH, text=READ_OUT)


def _binary(op: Op) -> Meaning:
    def meaning(given: Given) -> Node:
        other = given.node(0, "other", "value", "exponent")
        if other is None:
            return given.tensor
        alpha = given.node(1, "alpha") if op is Op.ADD else None
        return given.make(op, other if alpha is None else given.graph.make(Op.MUL, (alpha, other), given.site))

    return meaning


def _subtracted(given: Given) -> Node:
    other = given.node(0, "other") or given.graph.number(0.0)
    alpha = given.node(1, "alpha")
    return given.graph.difference(
        given.tensor, other if alpha is None else given.graph.make(Op.MUL, (alpha, other)), given.site
    )


def _reversed_subtracted(given: Given) -> Node:
    return given.graph.difference(given.node(0, "other") or given.graph.number(0.0), given.tensor, given.site)


def _extreme(op: Op) -> Meaning:
    def meaning(given: Given) -> Node:
        other = given.arguments.get(0, "other")
        if (isinstance(other, Node) and other.op is not Op.NUMBER) or (
            other is not None and not isinstance(other, Node | Literal)
        ):
            return given.make(op, given.as_node(other))
        return given.make(Op.OPAQUE, text=op.name.lower())  # over an axis

    return meaning


def _paired_extreme(op: Op) -> Meaning:
    return lambda given: given.make(op, given.node(0, "other") or given.graph.number(0.0))


def _clamped(low: tuple[int, str] | None, high: tuple[int, str] | None) -> Meaning:
    def meaning(given: Given) -> Node:
        infinite = float("inf")
        bounds = [given.graph.number(-infinite), given.graph.number(infinite)]
        for at, place in enumerate((low, high)):
            if place is not None:
                names = (place[1], "a_min" if at == 0 else "a_max", "min" if at == 0 else "max")
                bounds[at] = _as_knob(given.node(place[0], *names), given) or bounds[at]
        return given.make(Op.CLAMP, *bounds)

    return meaning


def _as_knob(node: Node | None, given: Given) -> Node | None:
    """A bound of which nothing is known is a number that is not known, and no part of the formula."""
    return given.graph.scalar(node.text, None, node.site) if node is not None and node.roles == FOREIGN else node


def _where(given: Given) -> Node:
    if given.tensor.roles == FOREIGN:  # a test of something else: a mask
        given = Given(given.graph, given.graph.mask, given.arguments, given.as_node, given.site)
    one, other = given.node(0, "input", "x"), given.node(1, "other", "y")
    if one is None or other is None:
        return given.graph.mask
    if given.tensor.is_scalar and (_is_zero(other) or _is_zero(one)):
        return one if _is_zero(other) else other  # a mask by another name
    return given.make(Op.WHERE, one, other)


def _is_zero(node: Node) -> bool:
    return node.op is Op.NUMBER and node.number == 0.0


def _power(given: Given) -> Node:
    return given.make(Op.POW, given.node(0, "exponent", "y") or given.graph.number(1.0))


def _powered(exponent: float) -> Meaning:
    return lambda given: given.make(Op.POW, given.graph.number(exponent))


def _reduced(text: str) -> Meaning:
    def meaning(given: Given) -> Node:
        axis = given.axis(0)
        if text == "sum" and axis in OVER_VOCABULARY and (factors := without_one_hot(given.tensor)) is not None:
            product = given.graph.whole_product(factors, given.site)
            if product.vocabulary:
                entry = picked(given.graph, product, given.site)
                return entry if axis is not None else given.graph.make(Op.REDUCE, (entry,), given.site, text)
        return given.make(Op.REDUCE, text=text, axis=axis)

    return meaning


def _gathered(given: Given) -> Node:
    """Picking the sampled token's entry out of the vocabulary."""
    tensor = given.tensor
    given_indices = (
        given.arguments.get(1, "index", "indices"),
        given.arguments.get(0),
    )  # beside the axis, or before it
    if tensor.vocabulary and any(map(_are_top_entries, given_indices)):
        return given.make(Op.TOPK)
    if any(isinstance(index, Node) and index.text == SORTED for index in given_indices):
        return tensor  # every entry, in another order
    return picked(given.graph, tensor, given.site)


def _are_top_entries(index: Value | None) -> bool:
    """Indices of the likeliest entries: picked here, or called so."""
    if isinstance(index, Path):
        return names.is_of_top_entries(index.name)
    return isinstance(index, Node) and index.op is Op.TOPK


def _cosh(given: Given) -> Node:
    graph, site = given.graph, given.site
    grown, shrunk = given.make(Op.EXP), graph.make(Op.EXP, (graph.negative(given.tensor, site),), site)
    return graph.make(Op.MUL, (graph.number(0.5), graph.make(Op.ADD, (grown, shrunk), site)), site)


def _softmaxed(op: Op) -> Meaning:
    def meaning(given: Given) -> Node:
        node = given.make(op)
        node.vocabulary = given.tensor.roles != 0
        return node

    return meaning


def _logsumexp(given: Given) -> Node:
    return given.make(Op.LOGSUMEXP, axis=given.axis(0))


def _scattered(given: Given) -> Node:
    source = given.node(2, "src", "source", "value")
    return given.tensor if source is None else given.make(Op.ADD, source)


def _replaced(given: Given) -> Node:
    return given.node(0, "src", "other", "value") or given.tensor


def _lerp(given: Given) -> Node:
    end, weight = given.node(0, "end"), given.node(1, "weight")
    if end is None or weight is None:
        return given.tensor
    step = given.graph.make(Op.MUL, (weight, given.graph.difference(end, given.tensor, given.site)), given.site)
    return given.make(Op.ADD, step)


def _one_hot(given: Given) -> Node:
    return given.graph.scalar(ONE_HOT, None, given.site)


def _sorted(given: Given) -> Node:
    """Values and indices alike: what is cut off its end leaves the likeliest entries."""
    return given.make(Op.STACK, text=SORTED) if given.tensor.vocabulary else given.tensor


def _stacked(given: Given) -> Node:
    return given.tensor  # a sequence was already made one node


def _number(value: float) -> Meaning:
    return lambda given: given.graph.number(value)


def _counted(given: Given) -> Node:
    return given.graph.mask


_COMPARISONS = {
    "==": ("eq", "equal"), "!=": ("ne", "not_equal"), ">": ("gt", "greater"), ">=": ("ge", "greater_equal"),
    "<": ("lt", "less"), "<=": ("le", "less_equal"),
}  # fmt: skip


def _compared(text: str) -> Meaning:
    """A comparison element by element; of tensors of which nothing is known a mask."""

    def compared(given: Given) -> Node:
        other = given.node(0, "other", "y", "x2") or given.graph.number(0.0)
        if not (given.tensor.roles and other.is_pure) or (given.tensor.roles | other.roles) & FOREIGN:
            return given.graph.mask
        return given.graph.make(Op.COMPARE, (given.tensor, other), given.site, text=text)

    return compared


def _spread(given: Given) -> Node:
    return given.make(Op.OPAQUE, text="std", axis=given.axis(0))


SAME = names.vocabulary(
    """
    float double half bfloat16 to type type_as astype cuda cpu contiguous clone copy view view_as reshape squeeze
    squeeze_ unsqueeze unsqueeze_ expand expand_as expand_dims repeat repeat_interleave flatten unflatten ravel
    transpose permute swapaxes movedim t flip fliplr roll requires_grad_ masked_fill masked_fill_ masked_select
    nan_to_num nan_to_num_ index_select index_fill narrow cumsum logcumsumexp tril triu pad chunk split unbind
    tensor_split block_until_ready asarray as_tensor atleast_1d wait full_tensor to_local redistribute to_dense
    broadcast_to array gather_for_metrics pin_memory select take device_put
    """
)

DETACHING = frozenset({"detach", "detach_", "stop_gradient"})

OPERATIONS: dict[str, Meaning] = {
    **dict.fromkeys(SAME, _same),
    **dict.fromkeys(DETACHING, _detached),
    **dict.fromkeys(("item", "tolist", "numpy", "asnumpy"), _read_out),
    **dict.fromkeys(("exp", "exp_"), _unary(Op.EXP)),
    **dict.fromkeys(("expm1", "expm1_"), _unary(Op.EXPM1)),
    **dict.fromkeys(("log", "log_"), _unary(Op.LOG)),
    **dict.fromkeys(("log1p", "log1p_"), _unary(Op.LOG1P)),
    **dict.fromkeys(("abs", "abs_", "absolute", "fabs"), _unary(Op.ABS)),
    **dict.fromkeys(("neg", "neg_", "negative"), lambda given: given.graph.negative(given.tensor, given.site)),
    **dict.fromkeys(("sign", "sgn"), _unary(Op.SIGN)),
    **dict.fromkeys(("sigmoid", "sigmoid_", "expit"), _unary(Op.SIGMOID)),
    **dict.fromkeys(("logsigmoid", "log_sigmoid"), _unary(Op.LOGSIGMOID)),
    "softplus": _unary(Op.SOFTPLUS),
    **dict.fromkeys(("tanh", "tanh_"), _unary(Op.TANH)),
    **dict.fromkeys(("add", "add_"), _binary(Op.ADD)),
    **dict.fromkeys(("sub", "sub_", "subtract"), _subtracted),
    **dict.fromkeys(("rsub",), _reversed_subtracted),
    **dict.fromkeys(("mul", "mul_", "multiply"), _binary(Op.MUL)),
    **dict.fromkeys(("div", "div_", "divide", "true_divide"), _binary(Op.DIV)),
    **dict.fromkeys(("pow", "pow_", "power", "float_power"), _power),
    **dict.fromkeys(("square", "square_"), _powered(2.0)),
    **dict.fromkeys(("sqrt", "sqrt_"), _powered(0.5)),
    **dict.fromkeys(("rsqrt", "rsqrt_"), _powered(-0.5)),
    "reciprocal": _powered(-1.0),
    **dict.fromkeys(("max", "amax"), _extreme(Op.MAX)),
    **dict.fromkeys(("min", "amin"), _extreme(Op.MIN)),
    **dict.fromkeys(("maximum", "fmax"), _paired_extreme(Op.MAX)),
    **dict.fromkeys(("minimum", "fmin"), _paired_extreme(Op.MIN)),
    "relu": lambda given: given.make(Op.MAX, given.graph.number(0.0)),
    **dict.fromkeys(("clamp", "clamp_", "clip", "clip_"), _clamped((0, "min"), (1, "max"))),
    **dict.fromkeys(("clamp_min", "clamp_min_"), _clamped((0, "min"), None)),
    **dict.fromkeys(("clamp_max", "clamp_max_"), _clamped(None, (0, "max"))),
    "where": _where,
    **dict.fromkeys(("sum", "nansum"), _reduced("sum")),
    **dict.fromkeys(("mean", "nanmean", "average"), _reduced("mean")),
    **dict.fromkeys(("std", "var", "norm", "nanstd", "std_mean"), _spread),
    **dict.fromkeys(("gather", "take_along_dim", "take_along_axis"), _gathered),
    **dict.fromkeys(("softmax",), _softmaxed(Op.SOFTMAX)),
    **dict.fromkeys(("log_softmax",), _softmaxed(Op.LOGSOFTMAX)),
    "logsumexp": _logsumexp,
    "one_hot": _one_hot,
    **dict.fromkeys(("cross_entropy", "softmax_cross_entropy_with_integer_labels"), cross_entropy),
    "nll_loss": likelihood,
    **dict.fromkeys(("binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss"), classified),
    "kl_div": kl_div,
    "mse_loss": distance(_powered(2.0)),
    "l1_loss": distance(_unary(Op.ABS)),
    "smooth_l1_loss": huber((4, "beta"), divided=True),
    "huber_loss": huber((2, "delta"), divided=False),
    "cosh": _cosh,
    "lerp": _lerp,
    **dict.fromkeys(("scatter_add_", "scatter_", "scatter", "scatter_add", "index_add_", "index_add", "index_put_"), _scattered),
    **dict.fromkeys(("copy_", "fill_"), _replaced),
    **dict.fromkeys(("cat", "stack", "concat", "concatenate", "hstack", "vstack", "pad_sequence"), _stacked),
    **dict.fromkeys(("zeros_like", "zeros", "empty_like", "empty", "new_zeros", "new_empty"), _number(0.0)),
    **dict.fromkeys(("ones_like", "ones", "new_ones"), _number(1.0)),
    **dict.fromkeys(("size", "numel", "dim", "count_nonzero", "argmax", "argmin", "isfinite", "isnan"), _counted),
    **{name: _compared(sign) for sign, both in _COMPARISONS.items() for name in both},
    **dict.fromkeys(("logical_and", "logical_or", "logical_not", "logical_xor", "isin", "isclose"), _counted),
    **dict.fromkeys(("any", "all", "bool", "long", "int"), _counted),
    **dict.fromkeys(("sort", "argsort"), _sorted),
    "topk": lambda given: given.make(Op.TOPK) if given.tensor.vocabulary else given.tensor,
}  # fmt: skip

# Built from numbers or tensors by value: whatever gradient the source had is lost.
COPIES_BY_VALUE = frozenset({"tensor", "FloatTensor", "full", "full_like"})
