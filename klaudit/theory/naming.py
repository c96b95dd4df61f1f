"""What a set-up is called: the words in which a policy requires or allows one (`k1-in-reward`, `no-kl`, `unbiased` ...)."""

from __future__ import annotations

from typing import get_args

from klaudit.model import EstimatorName, Gradient, Setup, Term

_ESTIMATORS = tuple(name for name in get_args(EstimatorName) if name != "unknown")
_BY_GRADIENT: dict[str, Gradient] = {
    "straight-through": "straight-through-k2",
    "importance-weighted": "importance-weighted",
}
_BY_VERDICT = {"unbiased": ("unbiased",), "unbiased-per-token": ("unbiased", "unbiased-per-token")}

# The targets of `klaudit fix` and the verdicts come first; then every estimator as it is, in either place.
SETUP_NAMES: tuple[str, ...] = (
    "k1-in-reward",
    "k2-in-loss",
    *_BY_GRADIENT,
    "no-kl",
    *_BY_VERDICT,
    *(
        f"{name}-in-{place}"
        for name in _ESTIMATORS
        for place in ("loss", "reward")
        if (name, place) not in (("k1", "reward"), ("k2", "loss"))
    ),
)


def is_named(setup: Setup, name: str) -> bool | None:
    """Whether every active term of the set-up is what `name` says, and there is one; None where that cannot be known.

    `k1-in-reward` means one whose coefficient counts: not inside group-std normalisation.  `no-kl` means no active term at all.
    """
    terms = [term for term in setup.terms if term.placement != "metric" and term.active is not False]
    if name == "no-kl":
        return False if any(term.active for term in terms) else None if terms else True
    if name in _BY_VERDICT:
        return None if setup.verdict == "unknown" else setup.verdict in _BY_VERDICT[name]
    if not terms:
        return False
    answers = [(_is(term, name), term.active) for term in terms]
    if any(answer is False and active for answer, active in answers):
        return False
    return True if all(answer and active for answer, active in answers) else None


def names_of(setup: Setup) -> tuple[str, ...]:
    """What the terms in force are called, `no-kl` where there are none; a term whose estimator is not known as `unknown-in-loss`."""
    terms = [term for term in setup.terms if term.placement != "metric" and term.active is not False]
    names = (_name(term) + (", if it is on" if term.active is None else "") for term in terms)
    return tuple(dict.fromkeys(names)) or ("no-kl",)


def _name(term: Term) -> str:
    for name, gradient in _BY_GRADIENT.items():
        if term.placement == "loss" and term.gradient == gradient:
            return f"{name} {term.estimator}"
    name = f"{term.estimator}-in-{term.placement}"
    if term.gradient == "none" and term.placement == "loss":
        return f"{name} without gradient"
    if term.placement == "reward" and term.normalised_by_group_std is not False:
        return f"{name}{' inside' if term.normalised_by_group_std else ', perhaps inside'} group-std normalisation"
    return name


def _is(term: Term, name: str) -> bool | None:
    if name in _BY_GRADIENT:
        if term.placement != "loss":
            return False
        if term.estimator == "unknown" or term.verdict == "unknown":
            return None
        return term.gradient == _BY_GRADIENT[name] and term.verdict in _BY_VERDICT["unbiased-per-token"]
    estimator, _, placement = name.rpartition("-in-")
    if term.placement != placement or (placement == "loss" and term.gradient not in ("pathwise", "score")):
        return False
    if term.estimator == "unknown":
        return None
    if term.estimator != estimator:
        return False
    if name == "k1-in-reward":
        return None if term.normalised_by_group_std is None else not term.normalised_by_group_std
    return True
