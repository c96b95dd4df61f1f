"""tools/check_prefilter.py"""

from __future__ import annotations

import check_prefilter
import pytest

from klaudit.scanner import Scanner
from tests.fixture_cases import FOLDER


def test_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    tree = str(FOLDER / "code-hand-written" / "input")
    assert check_prefilter.main([tree]) == 0
    assert capsys.readouterr().out == f"{tree}: 0 lost\n"


def test_what_is_lost_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scanner, "may_matter", lambda self, path, data: False)
    assert check_prefilter.main([str(FOLDER / "code-hand-written" / "input")]) == 1
    assert "KLA303" in capsys.readouterr().out
