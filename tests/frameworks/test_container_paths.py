"""Scripts that are called by the absolute path that a container gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.frameworks.endings import Endings
from klaudit.model import Report

TRAINS = 'python3 -m verl.trainer.main_ppo algorithm.adv_estimator=rloo "$@"\n'
GIVEN = "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_type=low_var_kl"
HOME = 'HOME_OF_IT="${HOME_OF_IT:-/workspace/project}"\n'


def scanned(root: Path, files: dict[str, str]) -> Report:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    report = scan([str(root)], Options(jobs=1, framework_versions={"verl": "0.9.1"}))
    assert report.errors == ()
    return report


CALLS = {
    "bash": f'{HOME}bash "${{HOME_OF_IT}}/scripts/train.sh" {GIVEN}\n',
    "by its name": f'{HOME}"$HOME_OF_IT"/scripts/train.sh {GIVEN}\n',
    "exec": f'{HOME}A=1 exec bash "$HOME_OF_IT/scripts/train.sh" {GIVEN}\n',
    "nohup": f'{HOME}nohup bash "$HOME_OF_IT/scripts/train.sh" {GIVEN} > log 2>&1 &\n',
    "sbatch": f"sbatch /workspace/project/scripts/train.sh {GIVEN}\n",
    "source": f"source /workspace/project/scripts/train.sh {GIVEN}\n",
    "a folder that nobody knows": f'bash "$(find_home)/scripts/train.sh" {GIVEN}\n',
    "dots": f"bash /workspace/project/runs/../scripts/./train.sh {GIVEN}\n",
    "options": f"bash -eux /workspace/project/scripts/train.sh {GIVEN}\n",
}


@pytest.mark.parametrize("call", CALLS)
def test_the_call_is_a_launch_and_says_how_the_script_is_known(tmp_path: Path, call: str) -> None:
    report = scanned(tmp_path, {"run.sh": CALLS[call], "scripts/train.sh": TRAINS})
    (finding,) = (each for each in report.findings if each.rule == "KLA101")
    assert finding.span.path == "run.sh"
    (setup,) = (each for each in report.setups if each.path == "run.sh")
    (loss,) = (term for term in setup.terms if term.placement == "loss")
    assert loss.active and loss.estimator == "k3"
    (said,) = (fact for fact in loss.facts if "is taken for" in fact)
    assert "/train.sh is taken for scripts/train.sh" in said


def test_settings_out_of_a_sourced_script(tmp_path: Path) -> None:
    run = f"source /workspace/project/lib/settings.sh\n{TRAINS.replace(chr(34) + '$@' + chr(34), '$SETTINGS')}"
    report = scanned(tmp_path, {"run.sh": run, "lib/settings.sh": f'SETTINGS="{GIVEN}"\n'})
    (setup,) = report.setups
    (loss,) = (term for term in setup.terms if term.placement == "loss")
    assert loss.active
    assert "/workspace/project/lib/settings.sh is taken for lib/settings.sh, which it ends like" in loss.facts


def test_what_lies_in_the_tree_is_known_by_its_path(tmp_path: Path) -> None:
    report = scanned(tmp_path, {"run.sh": f"bash scripts/train.sh {GIVEN}\n", "scripts/train.sh": TRAINS})
    (setup,) = (each for each in report.setups if each.path == "run.sh")
    assert not any("is taken for" in fact for term in setup.terms for fact in term.facts)


@pytest.mark.parametrize(
    ("files", "path", "expected"),
    [
        (["scripts/run.sh"], "/workspace/project/scripts/run.sh", "scripts/run.sh"),
        (["run.sh"], "/workspace/project/run.sh", "run.sh"),
        (["a/scripts/run.sh", "b/scripts/run.sh"], "/w/a/scripts/run.sh", "a/scripts/run.sh"),
        (["scripts/run.sh", "a/scripts/run.sh"], "/w/a/scripts/run.sh", "a/scripts/run.sh"),
        (["scripts/run.sh", "a/scripts/run.sh"], "/w/scripts/run.sh", "scripts/run.sh"),  # folders keep their names
        (["deep/project/scripts/run.sh"], "/workspace/project/scripts/run.sh", "deep/project/scripts/run.sh"),
        (["a/scripts/run.sh", "b/scripts/run.sh"], "/workspace/scripts/run.sh", None),  # either
        (["scripts/run.sh"], "/workspace/run.sh", None),  # a name alone, of a script elsewhere
        (["run.sh", "other/run.sh"], "/workspace/run.sh", None),
        (["scripts/run.sh"], "/workspace/scripts/walk.sh", None),
        (["lib/run.sh"], "/usr/lib/run.sh", None),  # of the machine
        (["bin/run.sh"], "/bin/run.sh", None),
        ([], "/workspace/run.sh", None),
        (["run.sh"], "/", None),
    ],
)
def test_no_other_script_can_be_meant(files: list[str], path: str, expected: str | None) -> None:
    assert Endings(files).script(path) == expected


def test_a_script_that_several_may_be_is_not_followed(tmp_path: Path) -> None:
    call = f"bash /workspace/train/train.sh {GIVEN}\n"
    report = scanned(tmp_path, {"run.sh": call, "a/train/train.sh": TRAINS, "b/train/train.sh": TRAINS})
    assert not any(each.path == "run.sh" for each in report.setups)


def test_a_path_of_the_machine_proves_no_file(tmp_path: Path) -> None:
    """`-f` of such a path stays unknown: the script goes on either way."""
    run = f"if [ -f /workspace/scripts/train.sh ]; then exit 1; fi\n{TRAINS.replace(chr(34) + '$@' + chr(34), GIVEN)}"
    report = scanned(tmp_path, {"run.sh": run, "scripts/train.sh": TRAINS})
    assert any(each.path == "run.sh" and each.assumes == () for each in report.setups)
