"""Only what is new since a commit counts: findings that were there already, on the same lines and with the same values, do not."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.gate.step import Gate
from klaudit.model import Report, Withheld


def hold(report: Report, gate: Gate) -> Report:
    """Raises RevisionError for a commit that cannot be found or compared with."""
    ref = gate.options.diff_base
    if ref is None:
        return report
    from klaudit.gate.since import unchanged_since  # most scans do not look back

    found = unchanged_since(ref, report, gate)
    old = set(map(id, found.unchanged))
    return replace(
        report,
        findings=tuple(finding for finding in report.findings if id(finding) not in old),
        errors=(*report.errors, *found.errors),
        withheld=(
            *report.withheld,
            *(Withheld(finding, "unchanged", f"as in {found.base}") for finding in found.unchanged),
        ),
        remarks=(*report.remarks, *found.remarks),
    )
