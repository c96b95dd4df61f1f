"""`klaudit fix`: patch, table, writing, exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from klaudit.cli import main

SCRIPT = (
    "set -x\npython3 -m verl.trainer.main_ppo \\\n    algorithm.adv_estimator=grpo \\\n"
    "    actor_rollout_ref.actor.use_kl_loss=True \\\n    actor_rollout_ref.actor.kl_loss_coef=0.002 \\\n"
    "    actor_rollout_ref.rollout.n=8 $@\n"
)


@dataclass(frozen=True)
class Outcome:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def klaudit(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`klaudit("fix", ".")` in the tree, with the real engine."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tree)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["klaudit", *arguments])
        status = main()
        return Outcome(status, *capsys.readouterr())

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "requirements.txt").write_text("verl==0.7.0\n")
    (tmp_path / "run.sh").write_text(SCRIPT)
    return tmp_path


def test_standard_output_is_a_patch_and_the_rest_goes_to_standard_error(
    tree: Path, klaudit: Callable[..., Outcome]
) -> None:
    shown = klaudit("fix", ".")
    assert shown.returncode == 1
    assert (tree / "run.sh").read_text() == SCRIPT
    assert shown.stdout.startswith("--- a/run.sh\n+++ b/run.sh\n@@ ")
    told = " ".join(shown.stderr.split())
    assert "also switches off group-std normalisation (algorithm.norm_adv_by_std_in_grpo)" in told
    assert "before loss k3 0.002 1 - exp(-d) biased after reward k1 0.002 d unbiased" in told
    assert "rule of thumb" in told
    assert "not written" in told
    subprocess.run(["git", "apply", "-"], input=shown.stdout, text=True, cwd=tree, check=True)
    patched = (tree / "run.sh").read_text()
    (tree / "run.sh").write_text(SCRIPT)
    written = klaudit("fix", ".", "--write")
    assert written.returncode == 0
    assert (tree / "run.sh").read_text() == patched
    again = klaudit("fix", ".")
    assert (again.returncode, again.stdout) == (0, "")


def test_json(tree: Path, klaudit: Callable[..., Outcome]) -> None:
    shown = klaudit("fix", ".", "--format", "json")
    report = json.loads(shown.stdout)
    assert (report["format"], report["written"], shown.returncode) == ("klaudit-fix/1", False, 1)
    (migration,) = report["migrations"]
    assert migration["rules"] == ["KLA101"]
    assert migration["before"]["terms"][0]["coefficient"] == 0.002
    assert [term["estimator"] for term in migration["after"]["terms"] if term["active"]] == ["k1"]
    data = SCRIPT.encode()
    for edit in sorted(migration["edits"], key=lambda edit: -edit["start"]):
        data = data[: edit["start"]] + edit["replacement"].encode() + data[edit["end"] :]
    klaudit("fix", ".", "--write")
    assert (tree / "run.sh").read_bytes() == data


def test_selection_and_targets(tree: Path, klaudit: Callable[..., Outcome]) -> None:
    assert klaudit("fix", ".", "--select", "KLA3").returncode == 0
    assert klaudit("fix", ".", "--ignore", "k3-in-loss").returncode == 0
    assert klaudit("fix", ".", "--framework", "trl").returncode == 0
    k2 = klaudit("fix", ".", "--target", "k2-in-loss")
    assert "+    actor_rollout_ref.actor.kl_loss_type=mse" in k2.stdout
    assert klaudit("fix", ".", "--target", "k4").returncode == 2
    assert klaudit("fix", "absent").returncode == 2


def test_summary_file(tree: Path, klaudit: Callable[..., Outcome]) -> None:
    klaudit("fix", ".", "--summary", "summary.txt", "--write")
    assert "run.sh:2 KLA101 to k1-in-reward" in (tree / "summary.txt").read_text()


def test_a_file_that_cannot_be_written(tree: Path, klaudit: Callable[..., Outcome]) -> None:
    (tree / "run.sh").rename(tree.parent / "outside.sh")
    (tree / "run.sh").symlink_to(tree.parent / "outside.sh")
    outcome = klaudit("fix", ".", "--write")
    assert outcome.returncode in (0, 2)
    assert (tree.parent / "outside.sh").read_text() == SCRIPT


def test_scan_diff_and_fix(tree: Path, klaudit: Callable[..., Outcome]) -> None:
    shown = klaudit("scan", ".", "--diff")
    assert (shown.returncode, shown.stdout) == (1, klaudit("fix", ".").stdout)
    mended = klaudit("scan", ".", "--fix")
    assert mended.returncode == 0
    assert "1 change in 1 file written." in mended.stderr
    assert "KLA101" not in mended.stdout
    assert "use_kl_loss=False" in (tree / "run.sh").read_text()


@pytest.mark.parametrize("command", [("fix", "--write"), ("scan", "--fix"), ("suppress", "--reason", "r", "--write")])
def test_nothing_is_written_through_a_named_link_that_leads_out(
    klaudit: Callable[..., Outcome], tree: Path, tmp_path_factory: pytest.TempPathFactory, command: tuple[str, ...]
) -> None:
    """As with `klaudit fix *.sh --write` where somebody has put such a link."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.sh").write_text(SCRIPT)
    (tree / "a.sh").symlink_to(outside / "a.sh")
    (tree / "folder").symlink_to(outside)
    for named in ("a.sh", "folder", "folder/a.sh", str(tree / "a.sh")):
        done = klaudit(*command, "run.sh", named)
        assert (done.returncode, "a symbolic link that leads out of" in done.stderr) == (2, True)
    assert (outside / "a.sh").read_text() == SCRIPT
    assert (tree / "run.sh").read_text() == SCRIPT


def test_a_link_within_the_tree_may_be_named(klaudit: Callable[..., Outcome], tree: Path) -> None:
    (tree / "link.sh").symlink_to("run.sh")
    assert klaudit("fix", "link.sh", "--write").returncode == 0
    assert (tree / "link.sh").is_symlink() and (tree / "run.sh").read_text() != SCRIPT


def test_what_is_told_begins_with_words(tree: Path, klaudit: Callable[..., Outcome]) -> None:
    """An empty line sets it off from a patch, and from nothing else."""
    klaudit("fix", ".", "--summary", "effect.txt")
    assert (tree / "effect.txt").read_text().startswith("run.sh:2 KLA101 to k1-in-reward\n")
    assert klaudit("fix", ".", "--target", "straight-through").stderr.startswith("Not changed\nrun.sh:2\n")
    (tree / "run.sh").write_text("set -x\n")
    assert klaudit("fix", ".").stderr == "Nothing to change.\n"


def test_from_a_folder_below_paths_are_as_seen_from_there(
    tree: Path, klaudit: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patch is the repository's, as git takes it wherever it is called."""
    (tree / ".git").mkdir()
    (tree / "sub").mkdir()
    (tree / "sub" / "other.sh").write_text(SCRIPT)
    monkeypatch.chdir(tree / "sub")
    below = klaudit("fix", ".")
    assert below.stdout.startswith("--- a/sub/other.sh\n+++ b/sub/other.sh\n")
    assert below.stderr.lstrip().startswith("other.sh:2 KLA101")
    assert klaudit("fix", "..").stderr.lstrip().startswith("../run.sh:2 KLA101")
