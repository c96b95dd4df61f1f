"""KLA205 says which settings leave the reference model out, in the words of that version."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

_VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.0"
)
_SWITCH = "actor_rollout_ref.actor.use_kl_loss=False"


@pytest.mark.parametrize(
    ("version", "change"),
    [
        ("0.9.1", f"set {_SWITCH}"),
        ("0.4.0", f"set {_SWITCH}"),
        # before 0.4.0 the switch alone would bring the reward's penalty in
        ("0.3.0.post1", f"set {_SWITCH} algorithm.kl_ctrl.kl_coef=0"),
        ("0.2", f"set {_SWITCH} algorithm.kl_ctrl.kl_coef=0"),
    ],
)
def test_what_leaves_the_reference_out(tmp_path: Path, version: str, change: str) -> None:
    (tmp_path / "run.sh").write_text(_VERL + "\n", encoding="utf-8")
    report = scan([str(tmp_path)], Options(jobs=1, framework_versions={"verl": version}))
    (fix,) = (each.fix for each in report.findings if each.rule == "KLA205")
    assert (fix.safety, fix.title) == ("none", f"{change}; or give a coefficient above 0")
