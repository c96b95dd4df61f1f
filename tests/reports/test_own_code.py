"""Formulas of the tree's own code in the report for people: they belong to no release, and pass lines instead of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import Report
from klaudit.reports import View, setups, text

CODE = """\
def compute_rewards(scores, logp, ref_logp, beta):
    kl = logp - ref_logp
    shaped = scores + beta * kl
    return shaped
"""


@pytest.fixture
def own(tmp_path: Path) -> Report:
    (tmp_path / "rewards.py").write_text(CODE, encoding="utf-8")
    return scan([str(tmp_path)], Options())


def test_its_way_is_told_once_and_no_setting_is_made_of_it(own: Report, view: View) -> None:
    shown = "".join(text.render(own, view))
    assert "KLA301" in shown
    assert "  = by way of: lines 2, 3" in shown
    assert "null" not in shown and "setting:" not in shown


def test_it_is_told_from_frameworks(own: Report, view: View) -> None:
    block = "".join(text.render(own, view))
    table = "".join(setups.render(own, view))
    assert "set-up rewards.py:2 own code\n" in block
    assert "own code " in table
    assert "custom" not in block + table and "assumed" not in block + table
