"""Every fixture project, fixed, gives the tree that lies beside it; a second time nothing changes, and the finding is gone."""

from __future__ import annotations

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.fixes.planning import plan
from tests.fixes.fixed_trees import CASES, FOLDER, files, planned, request_of


@pytest.mark.parametrize(("case", "name"), CASES)
def test_fixed_tree(case: str, name: str) -> None:
    made = planned(case, name)
    tree = FOLDER / case / name
    assert {**files(FOLDER / case / "input"), **made.contents} == files(tree)
    assert all(each.after is not None for each in made.migrations)

    again = plan([str(tree)], Options(), request_of(name))
    assert not again.contents
    fixed = {(each.path, rule) for each in made.migrations for rule in each.rules}
    found = [finding for finding in scan([str(tree)], Options()).findings if finding.severity != "note"]
    left = {(finding.span.path, finding.rule) for finding in found}
    refused = {(each.setup.path, rule) for each in again.unchanged for rule in each.rules}
    assert not (fixed & left) - refused
