"""Which estimator a formula is, by its value and slope over a grid of d, whatever its shape.

k(d) and dk/dlog pi are compared with the theory's table up to scale and shift; what fits no row is `unknown` and keeps its samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from klaudit.code.conditions import Assignment
from klaudit.code.evaluation.classification import Classification, Limits, Ratio
from klaudit.code.evaluation.dual import (
    NotEvaluableError,
    Tokens,
    UndecidedError,
    evaluate,
    is_average,
    is_linear_by_name,
    taken_parts,
)
from klaudit.code.evaluation.fitting import affine, is_constant, rounded, same, weight
from klaudit.code.evaluation.levels import level_of
from klaudit.code.evaluation.limits import CLAMPS, clamps_tokens, free_side, limits, live_range
from klaudit.code.evaluation.vocabulary import classify_vocabulary
from klaudit.code.graph import Node, Op, reachable
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.model import EstimatorName, Gradient
from klaudit.theory import ESTIMATORS

GRID = (-2.5, -1.8, -1.2, -0.7, -0.35, -0.1, 0.1, 0.35, 0.7, 1.2, 1.8, 2.5)
_X, _OTHER_X = -1.7, -0.6  # log pi of the sampled token: what depends on it is no function of d
_DELTA = 0.3  # log pi - log pi_old, where the ratio is looked for
_OTHER_KNOB = 0.6  # a knob of unknown number is 1 first: what it is then must hold for others
_UNKNOWN = Classification("unknown", "pathwise", 1.0)
_BENT_AVERAGE = replace(
    _UNKNOWN,
    why_unknown="a function of an average over tokens, not the average of one of each token's d: no estimator of a KL",
)
_GATE = replace(_UNKNOWN, why_unknown="an average that is let through on one side of a bound only")
_FEWEST = 4  # points outside every clamp that a comparison needs
_CACHE_SIZE = 2_000

_known: dict[object, Classification | None] = {}


def classify(node: Node, assignment: Assignment) -> Classification | None:
    """The classification of a formula under an assignment of its settings; None where it does not depend on d, or has no value."""
    shape = _shape(node, assignment)
    if shape is None:
        return None
    if shape not in _known:
        if len(_known) >= _CACHE_SIZE:
            _known.clear()
        _known[shape] = _classified(node, assignment)
    return _known[shape]


def with_limits(found: Classification, node: Node, assignment: Assignment) -> Classification:
    """With what clamps and exponentials do to the formula far from the reference."""
    return found if found.direction or not found.samples else replace(found, limits=limits(found, node, assignment))


def _shape(node: Node, assignment: Assignment) -> object | None:
    """What the classification depends on: the graph without its places and names.  The same helper is met again and again."""
    parts = taken_parts(node, assignment)
    if parts is None:
        return None
    number = {part: at for at, part in enumerate(sorted(parts, key=lambda part: part.serial))}
    return tuple(
        (
            part.op,
            part.number,
            part.roles,
            part.live,
            part.vocabulary,
            part.axis,
            part.text if part.op in _BY_TEXT else (is_linear_by_name(part), is_average(part)),
            *tuple(number.get(arg, -1) for arg in part.args),
        )
        for part in number
    )


_BY_TEXT = frozenset({Op.COMPARE, Op.REDUCE, Op.KLDIV})


def _classified(node: Node, assignment: Assignment) -> Classification | None:
    try:
        if any(part.vocabulary for part in taken_parts(node, assignment) or ()):
            return classify_vocabulary(node, assignment)
        return _of_tokens(node, assignment)
    except UndecidedError:
        return _UNKNOWN
    except NotEvaluableError:
        return None


def _of_tokens(node: Node, assignment: Assignment) -> Classification | None:
    parts = taken_parts(node, assignment) or frozenset()
    level = level_of(node, parts)
    if level == "mixed":
        return _UNKNOWN
    found = _with_knobs_at(1.0, node, assignment)
    if found is None:
        return None
    if level == "average":
        return _BENT_AVERAGE
    if any(part.op is Op.SCALAR and part.number is None for part in parts):
        other = _with_knobs_at(_OTHER_KNOB, node, assignment)
        found = found if other is not None and _is_alike(found, other) else _UNKNOWN
    return replace(found, level=level) if found.estimator != "unknown" else found


def _is_alike(one: Classification, other: Classification) -> bool:
    """Whatever number a knob inside the formula is, it is the same estimator in the same amount."""
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("estimator", "gradient", "scale", "ratio", "probability_weighted")
    ) and (one.estimator != "unknown" or one.weight == other.weight)


def _with_knobs_at(knob: float, node: Node, assignment: Assignment) -> Classification | None:
    sampled = evaluate(node, Tokens.along(GRID, x=_X, knob=knob), assignment)
    shifted = evaluate(node, Tokens.along(GRID, x=_OTHER_X, knob=knob), assignment)
    finite = [at for at in range(len(GRID)) if math.isfinite(sampled.values[at])]
    free = [at for at in finite if not sampled.clamped[at]]
    kept = free if len(free) >= _FEWEST else finite
    if len(kept) < _FEWEST:
        return None
    d = [GRID[at] for at in kept]
    values, slopes = [sampled.values[at] for at in kept], [sampled.slopes[at] for at in kept]
    moved, moved_slopes = [shifted.values[at] for at in kept], [shifted.slopes[at] for at in kept]
    if is_constant(values) and not any(slopes):
        return None
    if any(sampled.clamped) and _is_gate(node, assignment):
        return _GATE
    if same(values, moved):
        found = _of_value(d, values, slopes, has_weight=_has_live_weight(node, assignment))
    else:
        found = _of_slope(d, values, slopes, moved, moved_slopes)
    samples = tuple(zip(GRID, sampled.values, sampled.slopes, strict=True))
    where = _only_where(sampled.clamped, node, assignment)
    if where:
        slope = _elsewhere([slope / found.scale for slope in sampled.slopes], sampled.clamped, 0.0)
        value = _elsewhere(sampled.values, sampled.clamped, None)
        found = replace(found, only_where=where, slope_elsewhere=slope, value_elsewhere=value)
    ratio = _ratio(node, assignment)
    clipped = ratio != "none" and _is_clipped(taken_parts(node, assignment) or ())
    return replace(found, ratio=ratio, weight_is_clipped=clipped, samples=samples)


def _is_gate(node: Node, assignment: Assignment) -> bool:
    """A bound on an average is in force at the reference itself: below a target there is no penalty."""
    if clamps_tokens(node, assignment):
        return False
    return evaluate(node, Tokens.along([0.0]), assignment).clamped[0]


def _only_where(clamped: Sequence[bool], node: Node, assignment: Assignment) -> str:
    """The range of d that clamps of single tokens leave, where it ends within the grid: one side of d = 0, or less than the grid."""
    if not any(clamped) or not clamps_tokens(node, assignment):
        return ""
    below = all(flag for x, flag in zip(GRID, clamped, strict=True) if x < 0)
    above = all(flag for x, flag in zip(GRID, clamped, strict=True) if x > 0)
    if below and above:
        return ""
    if below or above:
        return free_side(node, assignment, 1.0 if below else -1.0)
    return Limits(live_range(node, assignment)).range_text


def _elsewhere(values: Sequence[float], clamped: Sequence[bool], idle: float | None) -> str:
    """What values (or slopes) are where a clamp is in force; empty where they are `idle`, or the same on each side without one."""
    bound = [(d, value) for d, value, flag in zip(GRID, values, clamped, strict=True) if flag]
    sides = [{rounded(value) for d, value in bound if (d < 0) == below} for below in (True, False)]
    if all(len(side) < 2 and (idle is None or side <= {idle}) for side in sides):
        return ""
    lower, upper = (side.pop() if len(side) == 1 else None for side in sides)
    if idle is None or any(len(side) > 1 for side in sides):
        return "another value" if idle is None else "another slope"
    if lower is not None and upper is not None and lower != upper:
        return f"{upper:g}*sign(d)".removeprefix("1*") if lower == -upper else "another slope"
    return f"{upper if lower is None else lower:g}"


def _of_value(
    d: Sequence[float], values: Sequence[float], slopes: Sequence[float], *, has_weight: bool
) -> Classification:
    """The value is a function of d alone."""
    for name, estimator in ESTIMATORS.items():
        fit = affine([estimator.value(x) for x in d], values)
        if fit is None:
            continue
        scale, shift = fit
        unit = [slope / scale for slope in slopes]
        gradient = _gradient(name, d, unit, has_weight=has_weight)
        if gradient is not None:
            return Classification(name, gradient, scale, shift, weight(d, unit))
    gradient = "pathwise" if any(slopes) else "none"
    return Classification("unknown", gradient, 1.0, 0.0, weight(d, slopes), is_of_d=True)


def _gradient(name: EstimatorName, d: Sequence[float], slopes: Sequence[float], *, has_weight: bool) -> Gradient | None:
    """How the slope (per unit of value) relates to the estimator's value and own slope."""
    estimator = ESTIMATORS[name]
    value, slope = [estimator.value(x) for x in d], [estimator.slope(x) for x in d]
    if same(slopes, [0.0] * len(d)):
        return "none"
    if same(slopes, slope):
        return "pathwise"
    if same(slopes, [k + w for k, w in zip(value, slope, strict=True)]) and (has_weight or not same(slopes, d)):
        return "importance-weighted"  # rho * k3 has the slope d as well, like a straight-through form
    if same(slopes, value) and (has_weight or not same(slopes, d)):
        return "score"  # sg(k) * rho: the penalty as a reward
    return "straight-through-k2" if same(slopes, d) else None


def _of_slope(
    d: Sequence[float],
    values: Sequence[float],
    slopes: Sequence[float],
    moved: Sequence[float],
    moved_slopes: Sequence[float],
) -> Classification:
    """The value depends on log pi itself too: a score-function form sg(k) * log pi, or samples weighted by their probability."""
    if same(slopes, moved_slopes) and any(slopes):
        for name, estimator in ESTIMATORS.items():
            fit = affine([estimator.value(x) for x in d], slopes)
            if fit is not None:
                return Classification(name, "score", fit[0], 0.0, weight(d, slopes))
    growth = math.exp(_OTHER_X - _X)
    return Classification(
        "unknown", "pathwise", 1.0, probability_weighted=same([value * growth for value in values], moved)
    )


# --- importance weights --------------------------------------------------------------------------------------------------------------


def _ratio(node: Node, assignment: Assignment) -> Ratio:
    """Whether the formula is weighted by pi/pi_old, and whether gradient flows through that weight."""
    if not node.roles & POLICY or not node.roles & OLD:
        return "none"
    on, off = (evaluate(node, Tokens.along(GRID, delta=delta), assignment) for delta in (0.0, _DELTA))
    if same(on.values, off.values):
        return "none"
    parts = taken_parts(node, assignment) or frozenset()
    if any(_is_weight(part) and _averages_over_tokens(part, parts) for part in parts):
        return "sequence"
    return "attached" if _has_live_weight(node, assignment) else "detached"


def _is_weight(node: Node) -> bool:
    """An importance weight: exp of log-probabilities of the policy, now or at rollout."""
    return node.op is Op.EXP and bool(node.roles & POLICY) and not node.roles & REFERENCE


def _is_clipped(parts: Iterable[Node]) -> bool:
    return any(part.op in CLAMPS and any(_is_weight(inner) for inner in reachable([part.args[0]])) for part in parts)


def _averages_over_tokens(weight_node: Node, parts: frozenset[Node]) -> bool:
    """exp of a mean or sum over tokens of log pi - log pi_old."""
    return any(is_average(inner) and inner.roles & OLD and inner in parts for inner in reachable([weight_node]))


def _has_live_weight(node: Node, assignment: Assignment) -> bool:
    """Gradient flows through an importance weight on its way to the policy."""
    parts = taken_parts(node, assignment) or frozenset()
    seen: set[Node] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part in seen or part.op is Op.DETACH or part not in parts:
            continue
        if _is_weight(part) and part.live:
            return True
        seen.add(part)
        waiting.extend(part.args)
    return False
