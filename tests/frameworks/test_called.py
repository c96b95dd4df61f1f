"""Scripts that call other scripts: what is given to them makes other launches of theirs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.frameworks.screening import calls_scripts
from klaudit.frameworks.sourced import Sourced
from klaudit.model import Report
from klaudit.tree import Tree

OPTIONS = Options(jobs=1, framework_versions={"verl": "0.9.1"})
CALLED = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True"
    ' actor_rollout_ref.actor.kl_loss_type=${TYPE:-mse} trainer.experiment_name=${NAME:-x} "$@"\n'
)
OVERRIDE = "actor_rollout_ref.actor.kl_loss_type=low_var_kl"


def scanned(root: Path, files: dict[str, str]) -> Report:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    report = scan([str(root)], OPTIONS)
    assert report.errors == ()
    return report


def told(report: Report) -> list[str]:
    """Findings above notes."""
    return [f"{each.span.path}:{each.span.line} {each.rule}" for each in report.findings if each.severity != "note"]


CALLS = {
    "a variable before it": "TYPE=low_var_kl bash inner.sh\n",
    "an exported one": "export TYPE=low_var_kl\n\nbash inner.sh\n",
    "from a loop": "for TYPE in mse low_var_kl; do\n  export TYPE\n  bash inner.sh\ndone\n",
    "an argument": f"bash inner.sh {OVERRIDE}\n",
    "its arguments": f'set -- {OVERRIDE}\nbash inner.sh "$@"\n',
    "by its name": "TYPE=low_var_kl ./inner.sh\n",
    "from its folder": 'export TYPE=low_var_kl\nbash "$(dirname "$0")/inner.sh"\n',
    "options of the shell": "TYPE=low_var_kl bash -ex inner.sh\n",
    "exec": "TYPE=low_var_kl exec bash inner.sh\n",
    "nohup": "TYPE=low_var_kl nohup bash inner.sh > log &\n",
    "env": "env A=1 TYPE=low_var_kl bash inner.sh\n",
    "env by its name": "env TYPE=low_var_kl ./inner.sh\n",
    "sbatch": "TYPE=low_var_kl sbatch -N 1 inner.sh\n",
    "sbatch --export": "sbatch --export=ALL,A=1,TYPE=low_var_kl inner.sh\n",
    "srun": "TYPE=low_var_kl srun bash inner.sh\n",
    "a function": "go() { TYPE=$1 bash inner.sh; }\ngo low_var_kl\n",
    "one branch": f'if [ "$1" = kl ]; then\n  bash inner.sh {OVERRIDE}\nfi\n',
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_changes_what_is_trained_is_a_launch_of_its_own(tmp_path: Path, call: str) -> None:
    report = scanned(tmp_path, {"inner.sh": CALLED, "outer.sh": CALLS[call]})
    lines = CALLS[call].split("\n")
    (place,) = told(report)
    path, line = place.removesuffix(" KLA101").split(":")
    assert path == "outer.sh"
    assert "inner.sh" in lines[int(line) - 1] or OVERRIDE in lines[int(line) - 1] or "TYPE=$1" in lines[int(line) - 1]


@pytest.mark.parametrize(
    "call",
    [
        "bash inner.sh\n",
        "NAME=y bash inner.sh\n",
        "bash inner.sh trainer.nnodes=2\n",
        "# bash inner.sh TYPE=low_var_kl\n",
    ],
)
def test_a_call_that_changes_nothing_of_it_is_told_once(tmp_path: Path, call: str) -> None:
    report = scanned(tmp_path, {"inner.sh": CALLED.replace("mse", "low_var_kl"), "outer.sh": call})
    assert told(report) == ["inner.sh:1 KLA101"]
    assert [setup.path for setup in report.setups] == ["inner.sh"]


def test_a_call_that_mends_it_leaves_the_script_what_it_is(tmp_path: Path) -> None:
    report = scanned(
        tmp_path, {"inner.sh": CALLED.replace("mse", "low_var_kl"), "outer.sh": "TYPE=mse bash inner.sh\n"}
    )
    assert told(report) == ["inner.sh:1 KLA101"]
    assert [setup.path for setup in report.setups] == ["inner.sh", "outer.sh"]


def test_calls_are_followed_through_others(tmp_path: Path) -> None:
    files = {
        "scripts/inner.sh": CALLED,
        "scripts/middle.sh": 'cd "$(dirname "$0")"\nbash inner.sh "$@"\n',
        "outer.sh": f"bash scripts/middle.sh {OVERRIDE}\n",
    }
    assert told(scanned(tmp_path, files)) == ["outer.sh:1 KLA101"]


def test_what_a_script_on_the_way_gives_is_told_there_alone(tmp_path: Path) -> None:
    files = {
        "inner.sh": CALLED,
        "middle.sh": f'bash inner.sh {OVERRIDE} "$@"\n',
        "outer.sh": "A=1 bash middle.sh trainer.total_epochs=3\n",
        "outermost.sh": "bash outer.sh 1\n",
        "other.sh": "bash middle.sh actor_rollout_ref.actor.kl_loss_coef=0.5\n",
    }
    assert told(scanned(tmp_path, files)) == ["middle.sh:1 KLA101", "other.sh:1 KLA101"]


def test_a_comment_beside_the_call_suppresses(tmp_path: Path) -> None:
    outer = f"# klaudit: ignore[KLA101] the old way\nTYPE=low_var_kl bash inner.sh\nbash inner.sh {OVERRIDE}\n"
    assert told(scanned(tmp_path, {"inner.sh": CALLED, "outer.sh": outer})) == ["outer.sh:3 KLA101"]


def test_scripts_that_call_each_other_come_to_an_end(tmp_path: Path) -> None:
    files = {f"s{number}.sh": f'X=1 bash s{(number + 1) % 9}.sh "$@" a\n{CALLED}' for number in range(9)}
    assert told(scanned(tmp_path, files)) == []


MASSES = {
    "assignments": b"a: " + b"a= b " * 400_000 + b" .sh\n",
    "one word": b"a" * 2_000_000 + b" x.sh\n",
    "suffixes": b".sh" * 600_000,
    "equals signs": (b"=" * 200 + b" ") * 10_000 + b".sh",
}


@pytest.mark.parametrize("mass", MASSES)
def test_looking_for_calls_takes_linear_time(tmp_path: Path, mass: str) -> None:
    (tmp_path / "x.sh").write_text(CALLED)
    called = Sourced(Tree(tmp_path), ["x.sh", "a.sh"], lambda data: b"main_ppo" in data)
    started = time.process_time()
    calls_scripts(MASSES[mass])
    assert called.calls(MASSES[mass], "a.sh") == (mass == "one word")
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run: bash x.sh", False),
        ("run: A=1 bash x.sh", True),
        ("run: bash x.sh a", True),
        ("run: |\n  A=1\n  bash x.sh", True),
        ("run: A=1; bash x.sh", False),
        ("run: bash x.py a", False),
    ],
)
def test_whether_something_is_given_to_a_script(text: str, expected: bool) -> None:
    assert calls_scripts(text.encode()) == expected
