"""What clamps and exponentials do to a formula far from the reference."""

from __future__ import annotations

import math

from klaudit.code.conditions import Assignment
from klaudit.code.evaluation.classification import Classification, Limits
from klaudit.code.evaluation.dual import Tokens, evaluate, evaluate_all, is_average, taken_parts
from klaudit.code.graph import Node, Op, reachable
from klaudit.code.roles import OLD, POLICY, REFERENCE
from klaudit.theory import ESTIMATORS, range_text

_FAR = (-200.0, 200.0)
_SIZES = (1e-3, 0.05, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0)
_EXP_LIMIT = 88.7  # float32
CLAMPS = frozenset({Op.CLAMP, Op.MIN, Op.MAX})


def limits(found: Classification, node: Node, assignment: Assignment) -> Limits:
    """The limits of a classified formula of sampled tokens."""
    parts = taken_parts(node, assignment) or frozenset()
    clamped = any(part.op in CLAMPS for part in parts)
    unbounded, after = _exponentials(node, parts, assignment)
    return Limits(
        live=live_range(node, assignment) if clamped else None,
        of_average=clamped and not clamps_tokens(node, assignment),
        unbounded_exp=unbounded,
        clamp_after_exp=after,
        sign_flips=clamped and _sign_flips(found, node, assignment),
    )


def _exponentials(node: Node, parts: frozenset[Node], assignment: Assignment) -> tuple[bool, bool]:
    """Whether some exp of a log-ratio with the reference is unbounded, and whether a clamp or a choice comes only after it."""
    exponentials = [part for part in parts if part.op in (Op.EXP, Op.EXPM1) and _is_of_a_ratio(part)]
    if not exponentials:
        return False, False
    far = evaluate_all(node, Tokens.along(_FAR), assignment)
    loose = [part for part in exponentials if any(value > _EXP_LIMIT for value in far[part.args[0]].values)]
    later = [part for part in parts if part.op in CLAMPS or part.op is Op.WHERE]
    return bool(loose), any(part in reachable([clamp]) for part in loose for clamp in later)


def _is_of_a_ratio(node: Node) -> bool:
    """With one model's log-probability alone it is a probability, which does not overflow."""
    return bool(node.roles & REFERENCE and node.roles & (POLICY | OLD))


def clamps_tokens(node: Node, assignment: Assignment) -> bool:
    """Clamps bound single tokens, and no average, which estimates a KL and is hardly ever below 0."""
    clamps = [part for part in taken_parts(node, assignment) or () if part.op in CLAMPS]
    return bool(clamps) and not any(map(is_average, reachable(clamps)))


def live_range(node: Node, assignment: Assignment) -> tuple[float, float] | None:
    """The range of d around 0 where no clamp is in force, to three digits."""
    low, high = (_edge(node, assignment, sign) for sign in (-1.0, 1.0))
    return None if math.isinf(low) and math.isinf(high) else (low, high)


def free_side(node: Node, assignment: Assignment, sign: float) -> str:
    """In words, the range on one side of d = 0 that clamps leave, where they are in force on all of the other."""
    step = 0.01
    flags = evaluate(node, Tokens.along([sign * step * at for at in range(1, 300)]), assignment).clamped
    first = flags.index(False) if False in flags else 0
    edge = float(f"{sign * step * (first + 1 if first else 0):.2g}")
    return range_text(edge, math.inf) if sign > 0 else range_text(-math.inf, edge)


def _edge(node: Node, assignment: Assignment, sign: float) -> float:
    points = [sign * size for size in _SIZES]
    stuck = _first_clamped(node, assignment, points)
    if stuck is None:
        return sign * math.inf
    free = points[stuck - 1] if stuck else 0.0
    end = points[stuck]
    for _ in range(3):
        points = [free + (end - free) * step / 12 for step in range(1, 13)]
        stuck = _first_clamped(node, assignment, points)
        end = points[11 if stuck is None else stuck]
        free = end - (points[1] - points[0])
    return (free + end) / 2


def _first_clamped(node: Node, assignment: Assignment, points: list[float]) -> int | None:
    flags = evaluate(node, Tokens.along(points), assignment).clamped
    return next((at for at, flag in enumerate(flags) if flag), None)


def _sign_flips(found: Classification, node: Node, assignment: Assignment) -> bool:
    if found.estimator not in ESTIMATORS or found.gradient != "pathwise":
        return False
    true = ESTIMATORS[found.estimator].slope
    points = [sign * size for size in _SIZES if size > 2 for sign in (-1.0, 1.0)]
    wide = evaluate(node, Tokens.along(points), assignment)
    return any(
        clamped and slope / found.scale * true(point) < 0
        for point, slope, clamped in zip(points, wide.slopes, wide.clamped, strict=True)
    )
