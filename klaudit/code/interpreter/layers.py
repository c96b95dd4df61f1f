"""Layers without weights (`LogSoftmax(dim=-1)`, `KLDivLoss(...)`): the function that the object is, with what it was made with."""

from __future__ import annotations

from klaudit.code.values import Arguments, Operation

# a layer -> the function it applies, and the names of what its constructor takes by position
LAYERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "LogSoftmax": ("log_softmax", ("dim",)),
    "Softmax": ("softmax", ("dim",)),
    "LogSigmoid": ("logsigmoid", ()),
    "Sigmoid": ("sigmoid", ()),
    "Softplus": ("softplus", ()),
    "Tanh": ("tanh", ()),
    "ReLU": ("relu", ()),
    "KLDivLoss": ("kl_div", ("size_average", "reduce", "reduction", "log_target")),
    "CrossEntropyLoss": ("cross_entropy", ("weight", "size_average", "ignore_index", "reduce", "reduction")),
    "NLLLoss": ("nll_loss", ("weight", "size_average", "ignore_index", "reduce", "reduction")),
    "MSELoss": ("mse_loss", ("size_average", "reduce", "reduction")),
    "L1Loss": ("l1_loss", ("size_average", "reduce", "reduction")),
    "SmoothL1Loss": ("smooth_l1_loss", ("size_average", "reduce", "reduction", "beta")),
    "HuberLoss": ("huber_loss", ("reduction", "delta")),
}


def layer(name: str, given: Arguments) -> Operation:
    """What the constructor of a layer gives; arguments of the function that only the constructor takes are handed on by name."""
    function, positions = LAYERS[name]
    keywords = dict(zip(positions, given.positional, strict=False))
    return Operation(function, None, [], {**keywords, **given.keywords})
