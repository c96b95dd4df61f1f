"""`scan --format json` carries the edits of rewrites that are known; `fix` plans them for a whole tree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from click.testing import CliRunner

from klaudit.cli import cli
from klaudit.configuration import Options
from klaudit.fixes.edits import apply
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan
from klaudit.model import Edit

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def test_a_finding_carries_its_edits(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "code-notebook" / "input", tmp_path, dirs_exist_ok=True)
    report = json.loads(CliRunner().invoke(cli, ["scan", str(tmp_path), "--format", "json", "--isolated"]).stdout)
    (fix,) = [each["fix"] for each in report["findings"] if each["rule"] == "KLA101"]
    assert fix["safety"] == "unsafe"
    data = apply((tmp_path / "grpo.ipynb").read_bytes(), [Edit(**edit) for edit in fix["edits"]])
    assert data == (FIXTURES / "code-notebook" / "fixed-unsafe" / "grpo.ipynb").read_bytes()


def test_a_helper_that_others_get_wrong_by_the_change_is_left_alone(tmp_path: Path) -> None:
    """The turned difference of a shared helper would turn the right caller's round."""
    (tmp_path / "helper.py").write_text(
        "import torch\n\n\ndef k3(logp, ref_logp):\n    d = logp - ref_logp\n    return d.exp() - 1 - d\n\n\n"
        "def compute_loss(pg_loss, logp, ref_logp, beta):\n    return pg_loss + beta * k3(logp, ref_logp).mean()\n"
    )
    (tmp_path / "other.py").write_text(
        "from helper import k3\n\n\n"
        "def compute_loss(pg_loss, logp, ref_logp, beta):\n    return pg_loss + beta * k3(ref_logp, logp).mean()\n"
    )
    made = plan([str(tmp_path)], Options(select=("KLA302",)), Request(unsafe=True))
    for path, data in made.contents.items():
        (tmp_path / path).write_bytes(data)
    report = json.loads(CliRunner().invoke(cli, ["scan", str(tmp_path), "--format", "json", "--isolated"]).stdout)
    assert not [each for each in report["findings"] if each["rule"] == "KLA302"], made.contents


def test_every_finding_on_code_is_told(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "code-loss-modules" / "input", tmp_path, dirs_exist_ok=True)
    made = plan([str(tmp_path)], Options(), Request())
    assert not made.contents
    assert {rule for each in made.unchanged for rule in each.rules} >= {"KLA101", "KLA301", "KLA303", "KLA308"}
    assert all(each.why for each in made.unchanged)


def test_files_that_are_not_python_do_not_stop_the_others(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "code-notebook" / "input", tmp_path, dirs_exist_ok=True)
    (tmp_path / "broken.py").write_text("def compute_loss(logp, ref_logp, kl:\n")
    (tmp_path / "deep.py").write_text("kl = logp - ref_logp + " + "(" * 3_000 + "1" + ")" * 3_000 + "\n")
    (tmp_path / "long.py").write_text("kl = logp - ref_logp" + " + 1" * 30_000 + "\nloss = pg_loss + beta * kl\n")
    made = plan([str(tmp_path)], Options(), Request(unsafe=True))
    assert set(made.contents) == {"grpo.ipynb"}
