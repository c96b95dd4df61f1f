"""KLA102, KLA104: the estimator of a reward becomes k1 where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from klaudit.code.result import Formula
from klaudit.fixes.codemods.proposal import Promise, Proposal
from klaudit.fixes.codemods.ratio import log_ratio
from klaudit.fixes.codemods.text import Code
from klaudit.fixes.codemods.to_k2 import unread_difference, written_at

_METRICS = "metrics that log this value show k1 from now on: the same mean, with more noise, and single values below 0"


def to_k1(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason, CannotEditError."""
    guess = log_ratio(code, formula)
    for ratio, node in product((guess, guess.turned()), written_at(code, formula, guess)):
        text = ratio.written(code)
        edit = code.replace(node, f"({text}).detach()") if formula.attached else code.in_place_of(node, text)
        yield Proposal(
            target="k1-in-reward",
            title="replace the estimator in the reward by k1, log pi - log pi_ref",
            edits=(edit, *unread_difference(code, node, ratio)),
            promise=Promise("reward", "k1", is_unbiased=True),
            notes=(_METRICS,),
        )
