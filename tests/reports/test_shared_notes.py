"""Notes that many set-ups share: told once in the report for people, each by itself wherever that is asked for or a tool reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from klaudit.cli import cli
from klaudit.reports.shared_notes import MOST

LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.use_kl_in_reward=True algorithm.adv_estimator=rloo "
    "actor_rollout_ref.actor.ppo_epochs=4\n"
)


def tree(folder: Path, count: int) -> list[str]:
    for at in range(count):
        (folder / f"run{at}.sh").write_text(LAUNCH)
    return ["scan", str(folder), "--framework-version", "verl=0.9.1", "--isolated", "--exit-zero"]


def shown(arguments: list[str]) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in (0, 1), result.output
    return result.output


def rows(text: str) -> int:
    return sum("KLA107 stale-penalty [note]" in line for line in text.splitlines())


def test_many_are_told_once(tmp_path: Path) -> None:
    text = shown(tree(tmp_path, MOST + 1))
    assert rows(text) == 0 and "set-up " not in text.partition("rule ")[0]
    assert f"note: KLA107 stale-penalty, of {MOST + 1} set-ups in {MOST + 1} files: " in text
    assert "`--select KLA107` or --verbose lists each" in text
    assert f"{MOST + 1} findings ({MOST + 1} notes)" in text and "Those not shown are listed" in text


def test_a_few_are_told_one_by_one(tmp_path: Path) -> None:
    text = shown(tree(tmp_path, MOST))
    assert rows(text) == MOST and "lists each" not in text


@pytest.mark.parametrize(
    "asked",
    [["--select", "KLA107"], ["--select", "stale-penalty"], ["--verbose"], ["--quiet"], ["--fail-on", "note"]],
)
def test_each_is_listed_where_that_is_asked_for(tmp_path: Path, asked: list[str]) -> None:
    arguments = tree(tmp_path, MOST + 1)
    if "--fail-on" in asked:
        arguments.remove("--exit-zero")
    text = shown([*arguments, *asked])
    assert rows(text) == MOST + 1 and "lists each" not in text


def test_a_category_names_no_rule(tmp_path: Path) -> None:
    assert rows(shown([*tree(tmp_path, MOST + 1), "--select", "KLA1"])) == 0


def test_other_findings_of_the_same_files_stay(tmp_path: Path) -> None:
    arguments = tree(tmp_path, MOST + 2)
    (tmp_path / "run0.sh").write_text(LAUNCH.replace("algorithm.use_kl", "algorithm.kl_penalty=k2 algorithm.use_kl"))
    text = shown(arguments)
    assert rows(text) == 0 and "KLA104" in text and "run0.sh:1" in text


def test_tools_get_them_all(tmp_path: Path) -> None:
    report = json.loads(shown([*tree(tmp_path, MOST + 1), "--format", "json"]))
    assert len(report["findings"]) == MOST + 1
