"""Adapters that are switched off or exchanged, so that the policy's network speaks for the reference."""

from __future__ import annotations

from klaudit.code import names
from klaudit.code.roles import REFERENCE
from klaudit.code.values import Literal, Value


def is_switched_by(context: str) -> bool:
    """A `with` block's context, as text, inside which the reference speaks."""
    words = names.words(context)
    return ("adapter" in words and ("disable" in words or "use" in words)) or ("null" in words and "ref" in words)


def switch(method: str, chosen: Value | None) -> bool | None:
    """Whether the reference speaks after `model.disable_adapter_layers()` or `model.set_adapter("reference")`; None for other calls.

    `chosen` is the first argument.
    """
    words = set(names.words(method))
    if "adapters" in words or {"adapter", "layers"} <= words:
        return "disable" in words if "disable" in words or "enable" in words else None
    if words != {"set", "adapter"} or chosen is None:
        return None
    name = chosen.value if isinstance(chosen, Literal) else None
    return isinstance(name, str) and names.holder(name) == REFERENCE
