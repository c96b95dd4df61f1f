"""The set-up after a migration, with what stands in no setting: the KL term of a class that the migration writes."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.fixes.migration import Migration
from klaudit.model import Evidence, Setup, Term
from klaudit.theory import judge_sum, look_up


def outcome(migration: Migration, resolved: Setup) -> Setup:
    """`resolved` is what the settings alone say after the edits."""
    if migration.code is None or not migration.code.template:
        return resolved
    row = look_up("k1", "reward", "score")
    total = judge_sum([(row, migration.amount, row.verdict)])
    term = Term(
        placement=row.placement,
        estimator=row.estimator,
        gradient=row.gradient,
        coefficient=migration.amount,
        active=True,
        score_weight=row.weight_text,
        verdict=row.verdict,
        evidence=(
            Evidence(
                migration.code.coefficient, migration.amount, "code", None, None, None, "the class written for it"
            ),
        ),
    )
    return replace(resolved, terms=(*resolved.terms, term), verdict=total.verdict, score_weight=total.weight_text)
