"""Which change a launch gets: the one asked for, or why there is none and what there is instead."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.findings.wording import change_text
from klaudit.fixes.migration import Request, RequestError
from klaudit.frameworks.migrate import Change, Impossible, change
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.rules import Framework

# Without k1 in the reward these come closest, best first: unbiased per token, off-policy too; one value changed; the gradient of k2.
_NEXT_BEST = ("importance-weighted", "straight-through", "k2-in-loss")


def choose(resolution: Resolution, request: Request) -> Change | Impossible:
    """The change to the target asked for."""
    if request.target == "k1-in-reward" and request.keep_std:
        return _without_touching_std(resolution)
    match change(resolution, request.target, keep_std=request.keep_std, choice=request.choice):
        case Change() as found if not found.is_empty:
            return found
        case Impossible() as impossible:
            return impossible
        case Change():
            return Impossible("its settings say so already")
    return Impossible(f"no recipe of the rules leads to {request.target} here")


def alternatives(resolution: Resolution, request: Request) -> list[str]:
    """`--target importance-weighted: set a=b`, for the other targets that can be reached without a bias."""
    found = [
        f"--choice {choice} --unsafe: {other.explanation}"
        for choice, other in choices(resolution, request.target).items()
        if choice != request.choice
    ]
    for target in ("k1-in-reward", *_NEXT_BEST):
        if target != request.target:
            other = change(resolution, target)
            if isinstance(other, Change) and not other.is_empty:
                found.append(f"--target {target}: {change_text(other, resolution)}")
    return found


def check_choice(request: Request, frameworks: Iterable[Framework]) -> None:
    """Raises RequestError for a choice that no recipe has."""
    trainers = (trainer for framework in frameworks for trainer in framework.trainers)
    known = sorted({recipe.choice for trainer in trainers for recipe in trainer.recipes if recipe.choice})
    if request.choice and request.choice not in known:
        raise RequestError(f"there is no choice {request.choice}: {', '.join(known)}")


def choices(resolution: Resolution, target: str) -> dict[str, Change]:
    """The marked ways to a target that are open to this launch."""
    names = dict.fromkeys(recipe.choice for recipe in resolution.launch.trainer.recipes if recipe.choice)
    found = {name: change(resolution, target, choice=name) for name in names}
    return {name: each for name, each in found.items() if isinstance(each, Change)}


def _without_touching_std(resolution: Resolution) -> Change | Impossible:
    """k1 in the reward where no group std is in the way, else the best end point in the loss."""
    rewarded = change(resolution, "k1-in-reward")
    if isinstance(rewarded, Change) and not rewarded.rescued_from_std and not rewarded.is_empty:
        return rewarded
    for target in _NEXT_BEST:
        found = change(resolution, target)
        if isinstance(found, Change) and not found.is_empty:
            return found
    if isinstance(rewarded, Impossible):
        return rewarded
    return Impossible(
        "within group-std normalisation a rewarded k1 loses its coefficient, and no other unbiased form exists here"
    )
