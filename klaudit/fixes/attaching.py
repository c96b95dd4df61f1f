"""Edits of proven migrations at the findings that they mend."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from klaudit.fixes.migration import Migration
from klaudit.model import Edit, Finding, Fix, Report, Span


def with_edits(report: Report, migrations: Iterable[Migration]) -> Report:
    """The report, each finding on settings with the edits that mend its launch, whichever branch of a script that takes.

    The edits of a migration belong together: with some of them alone a launch may train with neither set-up.
    """
    fixes: dict[tuple[Span, str], Fix] = {}
    for migration in migrations:
        for rule in migration.rules:
            place = (migration.before.span, rule)
            known = fixes[place].edits if place in fixes else ()
            fixes[place] = Fix(migration.safety, migration.title, _together(known, migration.edits))
    return replace(report, findings=tuple(_fixed(finding, fixes) for finding in report.findings))


def _fixed(finding: Finding, fixes: dict[tuple[Span, str], Fix]) -> Finding:
    fix = fixes.get((finding.launch, finding.rule)) if finding.launch is not None else None
    return finding if fix is None or finding.fix.edits else replace(finding, fix=fix)


def _together(*groups: Iterable[Edit]) -> tuple[Edit, ...]:
    edits = {edit for group in groups for edit in group}
    return tuple(sorted(edits, key=lambda edit: (edit.path, edit.start, edit.end, edit.replacement)))
