"""The whole way, with the real engine: from files to the report."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from klaudit.cli import main

LAUNCH = """\
#!/bin/bash
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.actor.kl_loss_coef=0.001 \\
    actor_rollout_ref.actor.kl_loss_type=low_var_kl
"""
Klaudit = Callable[..., tuple[int, str]]


@pytest.fixture
def klaudit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Klaudit:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["klaudit", *arguments])
        status = main()
        return status, capsys.readouterr().out

    return run


def validated(text: str) -> Any:
    document = json.loads(text)
    schema = Path(__file__).parents[2] / "rules" / "schema" / "report.json"
    jsonschema.validate(document, json.loads(schema.read_text(encoding="utf-8")))
    return document


def test_a_launch_is_found_judged_and_explained(klaudit: Klaudit, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(LAUNCH, encoding="utf-8")
    status, text = klaudit("scan")
    assert status == 1
    assert text.startswith("run.sh:4:5 KLA101 k3-in-loss [warning] ")
    for part in (
        "4 |     actor_rollout_ref.actor.use_kl_loss=True \\",
        "set-up run.sh:2 a launch of verl",
        "KL(ref||pi)",
        "  = fix: ",
    ):
        assert part in text
    status, text = klaudit("scan", "--format", "json")
    report = validated(text)
    assert status == 1
    assert report["summary"]["by_rule"]["KLA101"] == 1
    (setup,) = report["setups"]
    assert [
        (term["placement"], term["estimator"], term["coefficient"]) for term in setup["terms"] if term["active"]
    ] == [("loss", "k3", 0.001)]
    status, text = klaudit("setups", "--format", "json")
    assert (status, validated(text)["setups"]) == (0, report["setups"])


def test_selection_reaches_the_findings(klaudit: Klaudit, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(LAUNCH, encoding="utf-8")
    assert klaudit("scan", "--ignore", "k3-in-loss", "--quiet") == (0, "")
    (tmp_path / "klaudit.toml").write_text("[per-file-ignores]\n'*.sh' = ['KLA1']\n", encoding="utf-8")
    assert klaudit("scan", "--quiet") == (0, "")
    assert klaudit("scan", "--quiet", "--isolated")[0] == 1


def test_standard_input_is_scanned(klaudit: Klaudit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LAUNCH.encode())))
    status, text = klaudit("scan", "-", "--stdin-filename", "sub/new.sh", "--quiet")
    assert status == 1
    assert text.startswith("sub/new.sh:4:5 KLA101 ")


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes only there")
def test_hostile_names_and_values_stay_inert(klaudit: Klaudit, tmp_path: Path) -> None:
    names = [b"esc\x1b[2J.sh", "rtl\u202egnp.sh".encode(), b"bad\xff\xfe.sh", b"new\nline.sh"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text(
            LAUNCH.replace("0.001", "1e-3 trainer.name='\x1b]0;owned\x07'"), encoding="utf-8"
        )
    (tmp_path / "value.yaml").write_text(
        'actor_rollout_ref:\n  actor: {use_kl_loss: true, kl_loss_type: "k\\e[31m"}\n', encoding="utf-8"
    )
    (tmp_path / "broken.py").write_bytes(b"use_kl_loss = '\xff'\n")
    os.mkfifo(tmp_path / "pipe.sh")
    (tmp_path / "loop").symlink_to(".", target_is_directory=True)
    for arguments in (("scan",), ("scan", "--verbose"), ("scan", "--quiet"), ("setups",)):
        status, text = klaudit(*arguments)
        assert status == 2
        assert "esc\\x1b[2J.sh" in text
        assert not {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n"}
    report = validated(klaudit("scan", "--format", "json")[1])
    assert len({finding["path"] for finding in report["findings"] if finding["rule"] == "KLA101"}) == len(names)
    assert [error["path"] for error in report["errors"]] == ["broken.py"]


class TestReportsOfRealFindings:
    """Notebooks, names and contents that try to be more than names and contents."""

    NAME = "a,b:c%0A`@x|[y](z)<img>.sh"

    def test_a_notebook(self, klaudit: Klaudit, tmp_path: Path) -> None:
        cell = {
            "cell_type": "code",
            "source": ["from trl import GRPOConfig\n", "c = '\U0001f600', GRPOConfig(beta=0.04)\n"],
        }
        notebook = {
            "cells": [{"cell_type": "markdown", "source": []}, cell],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (tmp_path / "train.ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")
        _, text = klaudit("scan", "--framework-version", "trl=0.21.0", "--format", "sarif")
        (run,) = json.loads(text)["runs"]
        (row,) = [row for row in run["results"] if row["ruleId"] == "KLA101"]
        region = row["locations"][0]["physicalLocation"]["region"]
        line = (tmp_path / "train.ipynb").read_text(encoding="utf-8").splitlines()[region["startLine"] - 1]
        units = line.encode("utf-16-le")
        marked = units[2 * (region["startColumn"] - 1) : 2 * (region["endColumn"] - 1)].decode("utf-16-le")
        assert marked == "beta=0.04"
        assert row["locations"][0]["logicalLocations"] == [{"name": "cell 2", "kind": "module"}]

    def test_odd_names_and_values(self, klaudit: Klaudit, tmp_path: Path) -> None:
        hostile = LAUNCH.replace("0.001", "'0.001::error::##[add-mask]x'") + "# ::stop-commands::x\n"
        (tmp_path / self.NAME).write_text(LAUNCH, encoding="utf-8")
        (tmp_path / "value.sh").write_text(hostile, encoding="utf-8")
        _, annotated = klaudit("scan", "--format", "github")
        lines = [line for line in annotated.splitlines() if line.lstrip().startswith("::")]
        assert all(line.startswith(("::warning file=", "::error file=", "::notice file=")) for line in lines)
        assert f"file={self.NAME.replace('%', '%25').replace(',', '%2C').replace(':', '%3A')},line=4," in annotated
        for name in ("text", "github", "junit", "markdown"):
            _, printed = klaudit("scan", "--verbose", "--format", name)
            assert "##[" not in printed and not any(line.lstrip().startswith("::stop") for line in printed.splitlines())
        _, text = klaudit("scan", "--format", "sarif")
        uris = {
            row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for row in json.loads(text)["runs"][0]["results"]
        }
        assert "a%2Cb%3Ac%250A%60%40x%7C%5By%5D%28z%29%3Cimg%3E.sh" in uris

    def test_fingerprints_stay_when_lines_move(self, klaudit: Klaudit, tmp_path: Path) -> None:
        def prints() -> list[dict[str, str]]:
            _, text = klaudit("scan", "--format", "sarif")
            return [row["partialFingerprints"] for row in json.loads(text)["runs"][0]["results"]]

        (tmp_path / "run.sh").write_text(LAUNCH, encoding="utf-8")
        before = prints()
        (tmp_path / "run.sh").write_text(
            LAUNCH.replace("#!/bin/bash\n", "#!/bin/bash\n# new\n\nset -e\n"), encoding="utf-8"
        )
        assert prints() == before and set(before[0]) == {"klaudit/v1", "primaryLocationLineHash"}


@pytest.mark.parametrize(
    ("arguments", "in_report", "beside_it"),
    [
        (["scan", "sub"], True, False),
        (["scan", "sub", "--output", "json=report.json"], True, False),
        (["scan", "sub", "--format", "json"], False, True),
        (["scan", "sub", "--output", "report.html"], False, True),
        (["setups", "sub"], False, True),
        (["scan", "sub", "--quiet"], False, False),
        (["setups", "sub", "--quiet"], False, False),
    ],
)
def test_remarks_are_told_whatever_the_format(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    in_report: bool,
    beside_it: bool,
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "run.sh").write_text(LAUNCH, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("verl==0.7.0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["klaudit", *arguments])
    main()
    told = capsys.readouterr()
    assert ("note: `sub` is judged by itself" in told.out) == in_report
    assert ("note: `sub` is judged by itself" in told.err) == beside_it
