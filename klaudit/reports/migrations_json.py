"""A plan of migrations for programs, `klaudit-fix/1`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from klaudit import __version__
from klaudit.fixes.advice import advice
from klaudit.fixes.migration import Migration, Plan, Unchanged
from klaudit.model import Setup

FORMAT = "klaudit-fix/1"


def render(plan: Plan, *, is_written: bool) -> Iterator[str]:
    """One JSON text.  Offsets of edits are bytes of the file as it was read."""
    document = {
        "format": FORMAT,
        "klaudit": __version__,
        "written": is_written,
        "files": sorted(plan.contents),
        "migrations": [_migration(each) for each in plan.migrations],
        "unchanged": [_unchanged(each) for each in plan.unchanged],
        "advice": [{"text": each.text, "source": each.source} for each in advice(plan.migrations)],
        "errors": [{"path": each.path, "line": each.line, "message": each.message} for each in plan.problems],
    }
    yield json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _migration(each: Migration) -> dict[str, Any]:
    return {
        **_place(each.before),
        "rules": list(each.rules),
        "target": each.target,
        "safety": each.safety,
        "title": each.title,
        "explanation": each.explanation,
        "switches_off_group_std": list(each.rescued),
        "before": _setup(each.before),
        "after": _setup(each.after) if each.after is not None else None,
        "edits": [
            {"path": edit.path, "start": edit.start, "end": edit.end, "replacement": edit.replacement}
            for edit in each.edits
        ],
        "notes": list(each.notes),
    }


def _unchanged(each: Unchanged) -> dict[str, Any]:
    return {**_place(each.setup), "rules": list(each.rules), "why": each.why, "instead": list(each.instead)}


def _place(setup: Setup) -> dict[str, Any]:
    return {
        "path": setup.span.path,
        "line": setup.span.line,
        "column": setup.span.column,
        "cell": setup.span.cell,
        "framework": setup.framework,
        "framework_version": setup.version.value,
        "entry_point": setup.entry_point,
        "assumes": list(setup.assumes),
    }


def _setup(setup: Setup) -> dict[str, Any]:
    return {
        "verdict": setup.verdict,
        "score_weight": setup.score_weight,
        "terms": [
            {
                "placement": term.placement,
                "estimator": term.estimator,
                "gradient": term.gradient,
                "coefficient": term.coefficient,
                "active": term.active,
                "score_weight": term.score_weight,
                "verdict": term.verdict,
            }
            for term in setup.terms
        ],
    }
