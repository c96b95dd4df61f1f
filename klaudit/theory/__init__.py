"""Estimators, score weights and verdicts: pure mathematics, no I/O, no torch."""

from klaudit.theory.table import ESTIMATORS, FORWARD, REVERSE, TABLE, Estimator, Row, Sum, judge_sum, look_up
from klaudit.theory.weights import ZERO, ScoreWeight

__all__ = [
    "ESTIMATORS",
    "FORWARD",
    "REVERSE",
    "TABLE",
    "ZERO",
    "Estimator",
    "Row",
    "ScoreWeight",
    "Sum",
    "judge_sum",
    "look_up",
]
