"""What each migration changes in the gradient, computed on tensors: the lines of `klaudit fix --verify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klaudit.fixes.migration import Plan
from klaudit.model import Term
from klaudit.reports.view import View

_Effects = tuple[str, str, bool]


def effects(plan: Plan, view: View) -> Iterator[str]:
    """Score weight and exact bias against the gradient of KL(pi||ref), before and after, for each launch that is migrated.

    Biases are |g - g*| / |g*|, medians over seeded random policies in float64.  Needs torch.
    """
    known: dict[tuple[tuple[Term, ...], tuple[Term, ...]], _Effects] = {}
    yield "Gradient bias, exact over enumerated outcomes (float64)\n"
    for migration in plan.migrations:
        if migration.after is None:
            continue
        before, after = _what(migration.before.terms), _what(migration.after.terms)
        if (before, after) not in known:
            known[before, after] = _compared(migration.before.terms, migration.after.terms)
        was, becomes, is_better = known[before, after]
        span = migration.before.span
        yield f"{view.place(migration.path, span.line, None, span.cell)}\n"
        yield f"  before  {was}\n"
        yield f"  after   {becomes}{'' if is_better else '  (no improvement)'}\n"


def _compared(before: Iterable[Term], after: Iterable[Term]) -> _Effects:
    from klaudit.tensor.change import compare

    change = compare(before, after)
    return str(change.before), str(change.after), change.is_improvement


def _what(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms without where they come from, which differs from launch to launch."""
    from msgspec.structs import replace

    return tuple(replace(term, evidence=(), facts=(), why_inactive="") for term in terms)
