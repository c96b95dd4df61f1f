"""Which codemod mends which finding, in which order findings of one formula are mended, and what each target asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from klaudit.code.result import Formula
from klaudit.fixes.codemods.attached_reward import detach
from klaudit.fixes.codemods.detached_penalty import attach
from klaudit.fixes.codemods.kl_div_arguments import arguments
from klaudit.fixes.codemods.log_of_softmax import log_softmax
from klaudit.fixes.codemods.penalty_sign import turn_sign
from klaudit.fixes.codemods.proposal import CannotMendError, Case, Proposal
from klaudit.fixes.codemods.reversed_ratio import turn_ratio
from klaudit.fixes.codemods.rewarded_estimator import to_k1
from klaudit.fixes.codemods.text import Code
from klaudit.fixes.codemods.to_k2 import to_k2
from klaudit.fixes.codemods.to_reward import NoAdvantageError, to_reward
from klaudit.fixes.codemods.unstable_exponential import clamp_before_exp

Codemod = Callable[[Code, Formula], Iterator[Proposal]]

# Mistakes of their own first: what a penalty descends can be judged only when its sign, direction and gradient are right.
_MISTAKES: dict[str, Codemod] = {
    "penalty-sign": turn_sign,
    "reversed-ratio": turn_ratio,
    "detached-loss-penalty": attach,
    "kl-div-arguments": arguments,
    "log-of-softmax": log_softmax,
}
_REWARDED = ("k3-in-reward", "biased-reward-estimator")
_IN_LOSS = ("probability-weighted-samples", "k3-in-loss", "k1-in-loss", "biased-loss-estimator", "token-level-only")
_LAST: dict[str, Codemod] = {"attached-reward-penalty": detach, "unstable-exponential": clamp_before_exp}
_ORDER = (*_MISTAKES, *_REWARDED, *_IN_LOSS, *_LAST)


def rank(name: str) -> int:
    """The place of a finding in the order of mending."""
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def is_of_loss(name: str) -> bool:
    """Findings on what a term of the loss descends: more than one target mends them."""
    return name in _IN_LOSS and name != "token-level-only"


def proposals(code: Code, case: Case, target: str) -> Iterator[Proposal]:
    """What could mend a finding, best first.  Raises CannotMendError with the reason, CannotEditError where the text is in the way."""
    name, formula = case.finding.name, case.formula
    if name in _MISTAKES:
        yield from _MISTAKES[name](code, formula)
    elif name in _LAST:
        yield from _LAST[name](code, formula)
    elif "KLA301" in case.beside:
        raise CannotMendError("its sign is wrong (KLA301), and that could not be mended first")
    elif name in _REWARDED and target == "k1-in-reward":
        yield from to_k1(code, formula)
    elif name in _IN_LOSS:
        yield from _of_loss(code, case, target)
    else:
        raise CannotMendError(f"code is not rewritten to {target}")


def _of_loss(code: Code, case: Case, target: str) -> Iterator[Proposal]:
    is_weighted = case.finding.name == "probability-weighted-samples"
    if case.formula.placement != "loss":
        raise CannotMendError("its value weights the score function, and is not a term of the loss")
    if target == "k2-in-loss":
        yield from to_k2(code, case.formula, is_weighted=is_weighted)
    elif target != "k1-in-reward":
        raise CannotMendError(f"code is not rewritten to {target}")
    else:
        try:
            yield from to_reward(code, case.formula, is_weighted=is_weighted)
        except NoAdvantageError:
            if case.finding.name == "token-level-only":
                raise
            yield from to_k2(code, case.formula, is_weighted=is_weighted)
