"""Findings of a scan with the edits that mend them: applied, they give what `klaudit fix` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.fixes.attaching import with_edits
from klaudit.fixes.edits import apply, by_path
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan

FOLDER = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.mark.parametrize("case", ["verl-config-files", "skyrl-sources", "openrlhf-ray"])
def test_the_edits_of_all_findings_together_are_the_fix(case: str) -> None:
    tree = str(FOLDER / case / "input")
    made = plan([tree], Options(), Request())
    report = with_edits(scan([tree], Options()), made.migrations)
    mended = [finding for finding in report.findings if finding.fix.edits]
    assert mended
    assert all(finding.fix.safety == "safe" for finding in mended)
    edits = by_path(edit for finding in mended for edit in finding.fix.edits)
    assert {path: apply(made.originals[path], group) for path, group in edits.items()} == made.contents


def test_what_cannot_be_fixed_has_none() -> None:
    tree = str(FOLDER / "trl-notebook" / "input")
    report = with_edits(scan([tree], Options()), plan([tree], Options(), Request()).migrations)
    assert report.findings
    assert not any(finding.fix.edits for finding in report.findings)
