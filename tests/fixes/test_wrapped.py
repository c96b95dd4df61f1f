"""Launches that only a wrapper makes are named with the reason and the place to change, and nothing is edited for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.fixes.migration import Plan, Request, Unchanged
from klaudit.fixes.planning import plan
from klaudit.reports.migrations import summary
from klaudit.reports.view import View

OPTIONS = Options(jobs=1, framework_versions={"verl": "0.9.1"})
INNER = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=rloo actor_rollout_ref.actor.use_kl_loss=${{KL:-{on}}}"
    ' actor_rollout_ref.actor.kl_loss_type=${{TYPE:-{type}}} "$@"\n'
)
OVERRIDE = "actor_rollout_ref.actor.kl_loss_type=low_var_kl"


def planned(root: Path, files: dict[str, str], *, type: str = "mse", on: bool = True) -> Plan:
    for name, text in {"inner.sh": INNER.format(type=type, on=on), **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return plan([str(root)], OPTIONS, Request())


def alone(made: Plan) -> Unchanged:
    (unchanged,) = made.unchanged
    return unchanged


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        ("TYPE=low_var_kl bash inner.sh\n", 1, "kl_loss_type at run.sh:1"),
        ("# k3\nexport TYPE=low_var_kl\nbash inner.sh\n", 3, "kl_loss_type at run.sh:2"),
        (f"\nbash inner.sh {OVERRIDE}\n", 2, "kl_loss_type at run.sh:2"),
        ("for TYPE in mse low_var_kl; do\n  export TYPE\n  bash inner.sh\ndone\n", 3, "kl_loss_type at run.sh:1"),
    ],
)
def test_a_script_that_calls_another(tmp_path: Path, text: str, line: int, place: str) -> None:
    made = planned(tmp_path, {"run.sh": text})
    assert not made.contents
    left = alone(made)
    assert (left.setup.path, left.setup.span.line, left.rules) == ("run.sh", line, ("KLA101",))
    assert "only this call has inner.sh train so" in left.why
    assert f"change actor_rollout_ref.actor.{place} by hand" in left.why
    assert "k1-in-reward: set actor_rollout_ref.actor.use_kl_loss=False" in left.why


def test_a_job_file_that_gives_variables(tmp_path: Path) -> None:
    left = alone(planned(tmp_path, {"job.yaml": "envs:\n  TYPE: low_var_kl\nrun: |\n  bash inner.sh\n"}))
    assert (left.setup.path, left.rules) == ("job.yaml", ("KLA101",))
    assert "stands in another file: change what job.yaml:4 gives to it by hand" in left.why


def test_what_the_fix_of_the_called_script_mends_is_not_listed(tmp_path: Path) -> None:
    """The call adds nothing that stands in the way."""
    made = planned(tmp_path, {"run.sh": "bash inner.sh trainer.experiment_name=x\n"}, type="low_var_kl")
    assert list(made.contents) == ["inner.sh"] and not made.unchanged


def test_what_the_call_still_decides_after_the_fix_is_listed(tmp_path: Path) -> None:
    made = planned(tmp_path, {"run.sh": f"KL=True bash inner.sh {OVERRIDE}\n"}, on=False)
    assert [left.setup.path for left in made.unchanged] == ["run.sh"]


def test_a_call_that_is_right_is_not_listed(tmp_path: Path) -> None:
    made = planned(tmp_path, {"run.sh": "KL=False bash inner.sh algorithm.use_kl_in_reward=True\n"})
    assert not made.unchanged and not made.contents


def test_a_rule_that_is_not_selected_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("TYPE=low_var_kl bash inner.sh\n")
    (tmp_path / "inner.sh").write_text(INNER.format(type="mse", on=True))
    options = Options(jobs=1, framework_versions={"verl": "0.9.1"}, ignore=("KLA101",))
    assert not plan([str(tmp_path)], options, Request()).unchanged


def test_paths_in_reasons_are_those_from_the_working_directory(tmp_path: Path) -> None:
    """Also where one path is the end of another."""
    files = {"a/inner.sh": "TYPE=low_var_kl bash inner.sh\n", "inner.sh": INNER.format(type="mse", on=True)}
    made = planned(tmp_path, files)
    text = " ".join("".join(summary(made, View(prefix="there/", width=140), is_written=False)).split())
    assert "only this call has there/inner.sh train so" in text
    assert "kl_loss_type at there/a/inner.sh:1" in text
