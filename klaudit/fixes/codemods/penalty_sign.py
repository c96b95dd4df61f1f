"""KLA301: one sign is turned, where everything else of the sum has the right one."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.code import names as words
from klaudit.code.result import Formula
from klaudit.fixes.codemods.joint import Joint
from klaudit.fixes.codemods.names import Names
from klaudit.fixes.codemods.policy_term import policy_term
from klaudit.fixes.codemods.proposal import CannotMendError, Promise, Proposal
from klaudit.fixes.codemods.ratio import log_ratio
from klaudit.fixes.codemods.text import Code

_REVEALS = frozenset({"KLA101", "KLA103", "KLA105", "KLA106", "KLA102", "KLA104"})


def turn_sign(code: Code, formula: Formula) -> Iterator[Proposal]:
    """Raises CannotMendError with the reason."""
    if formula.has_negative_knobs:
        raise CannotMendError("it is the number of its coefficient that is negative, which may be meant")
    joined = code.at(formula.joined)
    if joined is None:
        raise CannotMendError(f"the penalty does not join the {formula.placement} in a sum of this file")
    joint = Joint.of(code, Names(code, code.function(joined)), formula)
    if formula.placement == "loss":
        _check_policy_term(code, formula, joint)
    yield Proposal(
        target="the right sign",
        title=f"{'add the penalty to the loss' if formula.placement == 'loss' else 'subtract the penalty from the reward'}",
        edits=(joint.with_other_sign(code),),
        promise=Promise(formula.placement, reveals=_REVEALS),
    )


def _check_policy_term(code: Code, formula: Formula, joint: Joint) -> None:
    """What else is in the sum must be a loss: in an objective that is minimised by mistake more than one sign is wrong."""
    names = Names(code, code.function(joint.node))
    try:
        term = policy_term(code, names, joint, log_ratio(code, formula))
    except CannotMendError:
        term = None
    if term is not None:
        if term.sign != joint.sign:
            raise CannotMendError(
                "the policy term has the wrong sign as well: the sum is an objective to be maximised, and the whole of it must be negated"
            )
        return
    name = code.text(joint.rest)
    if not words.is_loss(name):
        raise CannotMendError(f"whether `{name}` is a loss or an objective to be maximised is not seen")
