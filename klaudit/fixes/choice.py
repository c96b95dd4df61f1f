"""Which change a launch gets: the one asked for, or why there is none and what there is instead."""

from __future__ import annotations

from klaudit.findings.wording import change_text
from klaudit.fixes.migration import Request
from klaudit.frameworks.migrate import Change, Impossible, change
from klaudit.frameworks.resolve import Resolution

# Without k1 in the reward these come closest, best first: unbiased per token, off-policy too; one value changed; the gradient of k2.
_NEXT_BEST = ("importance-weighted", "straight-through", "k2-in-loss")


def choose(resolution: Resolution, request: Request) -> Change | Impossible:
    """The change to the target asked for."""
    if request.target == "k1-in-reward" and request.keep_std:
        return _without_touching_std(resolution)
    match change(resolution, request.target, keep_std=request.keep_std):
        case Change() as found if found.write or found.remove:
            return found
        case Impossible() as impossible:
            return impossible
        case Change():
            return Impossible("its settings say so already")
    return Impossible(f"no recipe of the rules leads to {request.target} here")


def alternatives(resolution: Resolution, request: Request) -> list[str]:
    """`--target importance-weighted: set a=b`, for the other targets that can be reached without a bias."""
    found = []
    for target in ("k1-in-reward", *_NEXT_BEST):
        if target != request.target:
            other = change(resolution, target)
            if isinstance(other, Change) and (other.write or other.remove):
                found.append(f"--target {target}: {change_text(other, resolution)}")
    return found


def _without_touching_std(resolution: Resolution) -> Change | Impossible:
    """k1 in the reward where no group std is in the way, else the best end point in the loss."""
    rewarded = change(resolution, "k1-in-reward")
    if isinstance(rewarded, Change) and not rewarded.rescued_from_std and (rewarded.write or rewarded.remove):
        return rewarded
    for target in _NEXT_BEST:
        found = change(resolution, target)
        if isinstance(found, Change) and (found.write or found.remove):
            return found
    if isinstance(rewarded, Impossible):
        return rewarded
    return Impossible(
        "within group-std normalisation a rewarded k1 loses its coefficient, and no other unbiased form exists here"
    )
