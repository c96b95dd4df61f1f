"""Settings and the code that consumes them: which formulas a setting of a launch decides, by the last part of its name.

Code spells a setting as an attribute or a key (`self.config.actor.kl_loss_type`, `cfg["kl_loss_type"]`), a launch as a path
(`actor_rollout_ref.actor.kl_loss_type=k3`): what they share is the last name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from klaudit.code.conditions import OTHER, Constant
from klaudit.code.result import CodeResult, Formula, Variant

_LAST_NAME = re.compile(r"(\w+)(?:'\]|\"\])?(?:\.value)?$")


def name_of(spelling: str) -> str:
    """The setting's own name: `kl_loss_type` of `self.config.kl_loss_type`, empty where it has none."""
    match = _LAST_NAME.search(spelling)
    return match[1] if match else ""


def ties(result: CodeResult) -> dict[str, tuple[Formula, ...]]:
    """The formulas of a file that enter a loss or a reward, by the settings that decide their estimator, coefficient or being there."""
    tied: dict[str, list[Formula]] = {}
    for formula in result.formulas:
        if formula.placement not in ("loss", "reward"):
            continue
        spellings = {text for variant in formula.variants for text, _ in variant.values}
        spellings |= {knob.name for knob in formula.knobs} | set(formula.settings)
        for name in sorted({name_of(spelling) for spelling in spellings} - {""}):
            tied.setdefault(name, []).append(formula)
    return {name: tuple(formulas) for name, formulas in tied.items()}


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


def told(formula: Formula, name: str, value: Constant) -> str:
    """One sentence: `kl_loss_type=low_var_kl` reaches `kl_penalty(...)` at algos.py:12 (k3) and enters the loss at actor.py:40."""
    where = f"`{_called(formula)}` at {formula.span.path}:{formula.span.line}"
    estimators = dict.fromkeys(variant.what.estimator for variant in under(formula, {name: value}))
    what = f" ({' or '.join(estimators)})" if estimators and name in _choosing(formula) else ""
    joined = formula.joined or formula.sink
    return f"{name}={value} reaches {where}{what} and enters the {formula.placement} at {joined.path}:{joined.line}"


def _choosing(formula: Formula) -> set[str]:
    return {name_of(text) for variant in formula.variants for text, _ in variant.values}


def _called(formula: Formula) -> str:
    """The call that leads to the formula without its arguments, else the formula."""
    text = " ".join(formula.text.split())
    head = re.match(r"[\w.]+(?=\()", text)
    return f"{head[0]}()" if head else text if len(text) <= 60 else f"{text[:57]}..."
