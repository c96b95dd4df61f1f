"""Settings and the code that consumes them: which formulas a setting of a launch decides, by the last part of its name.

Code spells a setting as an attribute or a key (`self.config.actor.kl_loss_type`, `cfg["kl_loss_type"]`), a launch as a path
(`actor_rollout_ref.actor.kl_loss_type=k3`) or a flag (`--kl-loss-type k3`): what they share is the last name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from klaudit.code.conditions import OTHER, Constant
from klaudit.code.result import Formula, Variant

_PART = re.compile(r"""\.?([A-Za-z_]\w*)|\[['"]([\w-]+)['"]\]""")


@lru_cache(maxsize=4096)
def parts_of(spelling: str) -> tuple[str, ...]:
    """`self.config['actor'].kl_loss_type` as its names; empty for what is no plain path (a call, an item by number, a sum)."""
    spelling = spelling.removeprefix("--").replace("-", "_").removesuffix(".value")
    parts: list[str] = []
    at = 0
    while at < len(spelling):
        match = _PART.match(spelling, at)
        if match is None or (match[1] and at and spelling[at] != "."):
            return ()
        parts.append(match[1] or match[2])
        at = match.end()
    return tuple(parts)


def name_of(spelling: str) -> str:
    """The setting's own name: `kl_loss_type` of `self.config.kl_loss_type`, empty where it has none."""
    return (parts_of(spelling) or ("",))[-1]


def under(formula: Formula, settings: Mapping[str, Constant]) -> tuple[Variant, ...]:
    """The variants that settings, by name, leave possible; all where they decide nothing, none where they are refused."""
    return tuple(variant for variant in formula.variants if _agrees(variant, formula, settings))


def _agrees(variant: Variant, formula: Formula, settings: Mapping[str, Constant]) -> bool:
    for spelling, values in variant.values:
        name = name_of(spelling)
        if name not in settings or settings[name] in values:
            continue
        named = {
            value for other in formula.variants for text, told in other.values if text == spelling for value in told
        }
        if OTHER not in values or settings[name] in named:
            return False
    return True


def called(formula: Formula) -> str:
    """The call that leads to the formula without its arguments, else the formula."""
    text = " ".join(formula.text.split())
    head = re.match(r"[\w.]+(?=\()", text)
    return f"{head[0]}()" if head else text if len(text) <= 60 else f"{text[:57]}..."
