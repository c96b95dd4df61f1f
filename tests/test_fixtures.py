"""Every fixture project gives the report that lies beside it."""

from __future__ import annotations

import json

import pytest

from tests.fixture_cases import CASES, FOLDER, reduced


@pytest.mark.parametrize("case", CASES)
def test_report(case: str) -> None:
    assert reduced(case) == json.loads((FOLDER / case / "report.json").read_text(encoding="utf-8"))


def test_there_are_cases() -> None:
    assert len(CASES) > 10
