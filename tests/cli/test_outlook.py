"""What a summary says of set-ups after `klaudit fix`: planned only where that is cheap, and never in the way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from klaudit.cli import main

LAUNCH = """\
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=rloo \\
    algorithm.use_kl_in_reward=True \\
    algorithm.kl_penalty=low_var_kl
"""


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(LAUNCH, encoding="utf-8")

    def summary(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["klaudit", "scan", "--isolated", "--format", "markdown", *arguments])
        assert main() in (1, 2)
        return capsys.readouterr().out

    return summary


def test_it_says_what_a_fix_would_change(summary: Any) -> None:
    assert "| biased | k1 in reward, 0.001, `0.001*d`, `KL(pi\\|\\|ref)`, unbiased | `run.sh:1` |" in summary()


@pytest.mark.parametrize("arguments", [["absent"], ["--timeout", "60"]])
def test_what_hangs_or_breaks_a_scan_is_not_planned(
    summary: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("klaudit.cli.outlook._SHARE", 1e9)
    monkeypatch.setattr("klaudit.cli.outlook._planned", lambda session: pytest.fail("planned"))
    assert "k3-in-reward" in summary("run.sh", *arguments)


def test_a_fault_in_it_keeps_nothing_from_being_reported(summary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RecursionError

    monkeypatch.setattr("klaudit.fixes.planning.plan", broken)
    text = summary()
    assert "k3-in-reward" in text and "after `klaudit fix`" not in text
