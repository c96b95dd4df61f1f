"""`klaudit explain FILE:LINE`."""

from __future__ import annotations

import re
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


_PLACE = re.compile(r"(?m)(?:^| )(\S+\.py):\d+")


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


@pytest.mark.parametrize(
    ("here", "given", "shown"),
    [
        (".", "pkg/losses.py", "pkg/losses.py"),
        (".", "./pkg/../pkg/losses.py", "pkg/losses.py"),
        ("pkg", "losses.py", "losses.py"),
        ("pkg", "../pkg/losses.py", "losses.py"),
        ("other/deep", "../../pkg/losses.py", "../../pkg/losses.py"),
        ("..", "{root}/pkg/losses.py", "{root}/pkg/losses.py"),
    ],
)
@pytest.mark.parametrize("line", [9, 2])
def test_paths_are_those_from_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, here: str, given: str, shown: str, line: int
) -> None:
    """Also of what another file has a part in, and where there is no formula at all."""
    (folder / "other" / "deep").mkdir(parents=True)
    monkeypatch.chdir(folder / here)
    given, shown = given.format(root=folder.name), shown.format(root=folder.name)
    printed = _PLACE.findall(explain(f"{given}:{line}").output)
    assert printed and set(printed) == {shown}


def test_a_formula_of_another_file_is_named_from_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "train.py").write_text(
        "from pkg.losses import compute_loss\n\n\ndef step(pg_loss, logp, ref_logp):\n"
        "    loss = compute_loss(pg_loss, logp, ref_logp, 0.1)\n    loss.backward()\n"
    )
    monkeypatch.chdir(folder / "pkg")
    output = explain("../train.py:5").output
    assert set(_PLACE.findall(output)) >= {"../train.py", "losses.py"}
    assert all(Path(path).is_file() for path in _PLACE.findall(output))


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
        ("bad.yaml:1", "trainer: [verl.trainer.main_ppo, use_kl_loss: {", "bad.yaml"),
        ("pkg:1", None, "a folder, not a file"),
    ],
)
def test_what_cannot_be_read(folder: Path, place: str, text: str | None, message: str) -> None:
    if text is not None:
        (folder / place.partition(":")[0]).write_text(text)
    outcome = explain(place)
    assert outcome.exit_code == 2
    assert message in outcome.output


LAUNCH = """\
set -x
KL=0.02
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.actor.kl_loss_coef=$KL \\
    actor_rollout_ref.actor.kl_loss_type=low_var_kl \\
    trainer.n_gpus_per_node=8
"""


@pytest.mark.parametrize("place", ["run.sh:2", "run.sh:3", "run.sh:4:5", "run.sh:6"])
def test_a_line_of_a_launch(folder: Path, place: str) -> None:
    """Wherever a report points to: the finding, what sets its values, the launch."""
    (folder / "run.sh").write_text(LAUNCH)
    shown = explain(place).output
    assert shown.startswith("run.sh:4:5 KLA101 k3-in-loss")
    assert "set-up run.sh:3 a launch of verl" in shown
    assert "KLA101 k3-in-loss [warning] since" in shown
    assert "No findings" not in shown


def test_a_line_of_a_config_object(folder: Path) -> None:
    (folder / "train.py").write_text("from trl import GRPOConfig\n\nconfig = GRPOConfig(\n    beta=0.1,\n)\n")
    shown = explain("train.py:4").output
    assert shown.startswith("train.py:4:5 KLA10")
    assert "no formula" not in shown


def test_a_launch_in_the_folder_below_a_root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pkg" / "run.sh").write_text(LAUNCH)
    (folder / "run.sh").write_text(LAUNCH)
    monkeypatch.chdir(folder / "pkg")
    assert explain("run.sh:4").output.startswith("run.sh:4:5 KLA101")
    assert explain("../run.sh:4").output.startswith("../run.sh:4:5 KLA101")


def test_what_is_withheld_is_explained_with_the_reason(folder: Path) -> None:
    (folder / "run.sh").write_text(f"# klaudit: ignore-file[KLA101] as in the paper\n{LAUNCH}")
    shown = explain("run.sh:5").output
    assert shown.startswith("run.sh:5:5 KLA101 k3-in-loss")
    assert "as in the paper" in shown


def test_two_places_and_what_their_rule_means_once(folder: Path) -> None:
    (folder / "run.sh").write_text(LAUNCH)
    (folder / "other.sh").write_text(LAUNCH)
    shown = explain("run.sh:4", "other.sh:4", "KLA101").output
    assert "run.sh:4:5 KLA101" in shown
    assert "other.sh:4:5 KLA101" in shown
    assert shown.count("KLA101 k3-in-loss [warning] since") == 1


def test_a_line_that_has_no_part_in_a_set_up(folder: Path) -> None:
    (folder / "run.sh").write_text(LAUNCH)
    outcome = explain("run.sh:1")
    assert outcome.exit_code == 0
    assert outcome.output.startswith("run.sh:1: no part of a KL set-up\nthose of this file:\n")
    assert "run.sh:3" in outcome.output


def test_a_file_without_a_line(folder: Path) -> None:
    (folder / "run.sh").write_text(LAUNCH)
    outcome = explain("run.sh")
    assert outcome.exit_code == 2
    assert "`run.sh` is a file: give the line too, as in `run.sh:1`" in outcome.output


def test_a_rule_beside_a_line(folder: Path) -> None:
    shown = explain("KLA101", "pkg/losses.py:8").output
    assert "is k3" in shown
    assert "k3-in-loss" in shown
