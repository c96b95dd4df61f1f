"""`klaudit explain FILE:LINE`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from klaudit.cli import cli
from tests.fixture_cases import FOLDER

CODE = """
import torch


def compute_loss(pg_loss, logp, ref_logp, beta):
    d = logp - ref_logp
    kl = (
        torch.exp(-d)
        + d
        - 1
    )
    return pg_loss + beta * kl.mean()
"""


def explain(*places: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *places])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "pkg" / "losses.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", [8, 9, 10, 12])
def test_any_line_of_a_formula(folder: Path, line: int) -> None:
    outcome = explain(f"pkg/losses.py:{line}")
    assert outcome.exit_code == 0
    for part in ("is k3", "verdict: biased", "log pi_ref", "w(d) = 1 - exp(-d)", "pkg/losses.py:12"):
        assert part in outcome.output, part


def test_from_a_folder_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "pkg")
    shown = explain("losses.py:8:5").output
    assert shown.startswith("../pkg/losses.py:8 ")


def test_a_line_of_a_notebook() -> None:
    shown = explain(f"{FOLDER / 'code-notebook' / 'input' / 'grpo.ipynb'}:31").output
    assert "is k3" in shown
    assert "part of a loss" in shown


def test_a_line_without_a_formula(folder: Path) -> None:
    outcome = explain("pkg/losses.py:2")
    assert outcome.exit_code == 0
    assert "no formula" in outcome.output
    assert "pkg/losses.py:8" in outcome.output.splitlines()[-1]


def test_a_test_is_explained_too(folder: Path) -> None:
    (folder / "test_losses.py").write_text(CODE)
    assert "is k3" in explain("test_losses.py:8").output


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("pkg/none.py:1", None, "no such file"),
        ("pkg/losses.py:99", None, "there is no line 99"),
        ("pkg/losses.py:0", None, "there is no line 0"),
        ("bad.py:1", "def (", "bad.py"),
        ("deep.py:1", "x = " + "(" * 30_000, "deep.py"),
        ("bad.ipynb:1", "{", "bad.ipynb"),
    ],
)
def test_what_cannot_be_read(folder: Path, place: str, text: str | None, message: str) -> None:
    if text is not None:
        (folder / place.partition(":")[0]).write_text(text)
    outcome = explain(place)
    assert outcome.exit_code == 2
    assert message in outcome.output


def test_a_rule_beside_a_line(folder: Path) -> None:
    shown = explain("KLA101", "pkg/losses.py:8").output
    assert "is k3" in shown
    assert "k3-in-loss" in shown
