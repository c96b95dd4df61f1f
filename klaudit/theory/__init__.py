"""Estimators, score weights and verdicts: pure mathematics, no I/O, no torch."""

from klaudit.theory.clamps import Clamp, ClampedWeight, clamped, cut, range_text
from klaudit.theory.estimators import ESTIMATORS, Estimator
from klaudit.theory.objectives import FORWARD, NOTHING, REVERSE, Divergence, Objective
from klaudit.theory.sums import Sum, judge_sum
from klaudit.theory.table import TABLE, Row, look_up
from klaudit.theory.variants import VARIANTS, Variant, both_placements, look_up_variant
from klaudit.theory.weights import ZERO, ScoreWeight

__all__ = [
    "ESTIMATORS", "FORWARD", "NOTHING", "REVERSE", "TABLE", "VARIANTS", "ZERO", "Clamp", "ClampedWeight", "Divergence", "Estimator",
    "Objective", "Row", "ScoreWeight", "Sum", "Variant", "both_placements", "clamped", "cut", "judge_sum", "look_up",
    "look_up_variant", "range_text",
]  # fmt: skip
