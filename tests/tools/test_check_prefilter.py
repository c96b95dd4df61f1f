"""tools/check_prefilter.py"""

from __future__ import annotations

import check_prefilter
import pytest

from klaudit.code.analyse import _Analysis
from klaudit.scanner import Scanner
from tests.fixture_cases import FOLDER

INPUT = str(FOLDER / "code-hand-written" / "input")


def test_nothing_is_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_prefilter.main([INPUT]) == 0
    assert capsys.readouterr().out == f"{INPUT}: 0 differences\n"


def test_what_is_lost_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scanner, "may_matter", lambda self, path, data: False)
    assert check_prefilter.main([INPUT]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(": - " in line and "KLA303" in line for line in lines)
    assert not any(": + " in line for line in lines)


def test_what_only_the_prefilter_finds_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screened = _Analysis._screened
    monkeypatch.setattr(_Analysis, "_screened", lambda self: screened(self) if self.prefilter else None)
    monkeypatch.setattr(_Analysis, "_everything_else", lambda self: None)
    assert check_prefilter.main([INPUT]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(": + " in line and "KLA303" in line for line in lines)
    assert not any(": - " in line for line in lines)
