"""The commands around `scan`, and the group that finds them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner

from klaudit.cli import COMMANDS, cli
from klaudit.configuration import load
from klaudit.findings import catalogue
from klaudit.frameworks.load import load_frameworks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Run = Callable[..., Any]


class TestGroup:
    def test_help_lists_every_command(self, run: Run) -> None:
        outcome = run("--help")
        assert outcome.status == 0
        assert all(f"  {name}" in outcome.out for name in COMMANDS)
        assert all(summary in outcome.out for _, summary in COMMANDS.values())

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_can_be_imported_and_has_help(self, run: Run, name: str) -> None:
        assert isinstance(import_module(COMMANDS[name][0]).command, click.Command)
        for option in ("--help", "-h"):
            outcome = run(name, option)
            assert outcome.status == 0
            assert outcome.out.startswith(f"Usage: klaudit {name} ")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("scna", "No such command `scna`. Did you mean `scan`?"),
            ("framework", "Did you mean `frameworks`?"),
            ("xyzzy", "No such command `xyzzy`.\n"),
            ("a\x1b[2Jb", "No such command `a\\x1b[2Jb`."),
        ],
    )
    def test_a_mistyped_command(self, run: Run, name: str, message: str) -> None:
        outcome = run(name)
        assert outcome.status == 2
        assert message in outcome.err

    def test_a_path_in_place_of_a_command(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "verl").mkdir()
        assert "Did you mean `klaudit scan verl`?" in run("verl").err

    def test_no_command_shows_help(self, run: Run) -> None:
        outcome = run()
        assert outcome.status in (0, 2)  # click changed its mind in 8.2
        assert "Usage: klaudit" in outcome.err + outcome.out

    def test_click_alone_gives_the_same_status(self, engine: Any) -> None:
        assert CliRunner().invoke(cli, ["scan", "absent"]).exit_code == 2
        assert CliRunner().invoke(cli, ["explain", "KLA999"]).exit_code == 2


class TestSetups:
    def test_table(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "run.sh").write_text("note", encoding="utf-8")
        outcome = run("setups")
        assert outcome.status == 0
        header, row, *rest = outcome.out.splitlines()
        assert header.split() == ["set-up", "framework", "KL", "terms", "score", "weight", "w(d)", "verdict"]
        assert row.startswith("run.sh:1") and row.endswith("biased")
        assert rest == ["", "1 set-up: 1 biased."]

    def test_findings_are_no_failure_but_errors_are(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "run.sh").write_text("error", encoding="utf-8")
        assert run("setups").status == 0
        outcome = run("setups", ".", "absent")
        assert outcome.status == 2
        assert "absent: error: no such file or folder" in outcome.err

    def test_json(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "run.sh").write_text("note", encoding="utf-8")
        document = json.loads(run("setups", "--format", "json").out)
        schema = Path(__file__).parents[2] / "rules" / "schema" / "report.json"
        jsonschema.validate(document, json.loads(schema.read_text(encoding="utf-8")))
        assert [setup["path"] for setup in document["setups"]] == ["run.sh"]

    def test_nothing(self, run: Run) -> None:
        assert run("setups").out == "No KL set-up there.\n"


class TestExplain:
    @pytest.mark.parametrize("entry", catalogue.load(), ids=lambda entry: entry.id)
    def test_every_entry_is_explained_in_full(self, run: Run, entry: catalogue.Entry) -> None:
        outcome = run("explain", entry.id)
        assert outcome.status == 0
        assert outcome.out.startswith(f"{entry.id} {entry.name} [{entry.severity}] since {entry.since}\n")
        told = set(outcome.out.split())
        for text in (entry.summary, entry.why, entry.fix, *entry.references):
            assert set(text.split()) <= told
        for example in entry.examples:
            for line in (example.wrong + example.right).splitlines():
                assert line.strip() in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 140
        assert run("explain", entry.name).out == outcome.out
        assert run("explain", entry.id.lower()).out == outcome.out

    def test_the_beginning_of_an_id_means_all_with_it(self, run: Run) -> None:
        text = run("explain", "KLA10", "k3-in-loss").out
        ids = [entry.id for entry in catalogue.load() if entry.id.startswith("KLA10")]
        assert [text.count(f"\n{id} ") + text.startswith(f"{id} ") for id in ids] == [1] * len(ids)

    def test_without_a_rule_all_are_listed(self, run: Run) -> None:
        lines = run("explain").out
        assert all(entry.id in lines for entry in catalogue.load())

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            ("KLA999", "unknown rule `KLA999`"),
            ("k3-in-los", "did you mean `k3-in-loss`"),
            ("", "unknown rule ``"),
            ("x\x1b", "`x\\x1b`"),
        ],
    )
    def test_an_unknown_rule(self, run: Run, rule: str, message: str) -> None:
        outcome = run("explain", rule)
        assert (outcome.status, outcome.out) == (2, "")
        assert message in outcome.err

    def test_it_fits_a_narrow_terminal(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        assert max(map(len, run("explain").out.splitlines())) <= 40


class TestFrameworks:
    def test_list(self, run: Run) -> None:
        text = run("frameworks").out
        assert all(framework.id in text and framework.newest in text for framework in load_frameworks())

    def test_one_in_full(self, run: Run) -> None:
        text = run("frameworks", "verl").out
        assert "0.7.1" in text
        assert "verl.trainer.main_ppo" in text
        assert "actor_rollout_ref.actor.kl_loss_type" in text

    def test_json(self, run: Run) -> None:
        document = json.loads(run("frameworks", "--format", "json").out)
        assert document["format"] == "klaudit-frameworks/1"
        assert [row["framework"] for row in document["frameworks"]] == [framework.id for framework in load_frameworks()]

    def test_an_unknown_one(self, run: Run) -> None:
        outcome = run("frameworks", "verll")
        assert outcome.status == 2
        assert "unknown framework `verll`: did you mean `verl`" in outcome.err

    def test_broken_rules_of_the_user_are_told(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "ours" / "frameworks").mkdir(parents=True)
        (tmp_path / "ours" / "frameworks" / "mine.yaml").write_text("framework: [", encoding="utf-8")
        (tmp_path / "klaudit.toml").write_text("rules = ['ours']", encoding="utf-8")
        outcome = run("frameworks")
        assert outcome.status == 2
        assert "mine.yaml:" in outcome.err and "Traceback" not in outcome.err


class TestConfig:
    def test_what_is_shown_is_a_configuration_that_gives_the_same(self, run: Run, tmp_path: Path) -> None:
        text = """
select = ["KLA1"]
exclude = ["third_party/"]
fail-on = "note"
jobs = 2

[framework-versions]
verl = "0.7.0"

[per-file-ignores]
"a b/**" = ["KLA2"]
"""
        file = tmp_path / "klaudit.toml"
        file.write_text(text, encoding="utf-8")
        outcome = run("config")
        assert outcome.status == 0
        assert f'select = ["KLA1"]  # {file}:2' in outcome.out
        assert "ignore = []  # default" in outcome.out
        (tmp_path / "again.toml").write_text(outcome.out, encoding="utf-8")
        assert load(tmp_path / "again.toml").options == load(file).options

    def test_the_defaults(self, run: Run) -> None:
        shown = tomllib.loads(run("config", "--isolated").out)
        assert shown["fail-on"] == "warning"
        assert shown["select"] == []

    def test_a_wrong_file_is_told(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "klaudit.toml").write_text("jobs = 0", encoding="utf-8")
        outcome = run("config")
        assert outcome.status == 2
        assert "klaudit.toml:1: `jobs`" in outcome.err

    def test_a_folder_that_is_not_there_is_told(self, run: Run) -> None:
        outcome = run("config", "absent")
        assert (outcome.status, outcome.out) == (2, "")
        assert "absent: no such file or folder" in outcome.err
