"""What a release cannot be told is quoted by what it goes by, and by no default of a key that it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

_VERL = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.total_epochs=1"
_LOSS = " actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.001"


@pytest.mark.parametrize(
    ("framework", "version", "command", "rule", "said", "never"),
    [
        (
            "verl", "0.3.0.post1", f"{_VERL}{_LOSS} algorithm.kl_ctrl.kl_coef=0.002", "KLA202",
            "cannot be set: before 0.4.0 the reward's KL is on exactly when use_kl_loss is off", "use_kl_in_reward=",
        ),
        (
            "verl", "0.4.0", f"{_VERL}{_LOSS} algorithm.kl_ctrl.kl_coef=0.002", "KLA202",
            "algorithm.use_kl_in_reward=False by default", "cannot be set",
        ),
        (
            "verl", "0.2", f"{_VERL} algorithm.kl_ctrl.kl_coef=0.002", "KLA107",
            "cannot be set: before 0.4.0 the reward's KL is on exactly when use_kl_loss is off", "use_kl_in_reward=",
        ),
        (
            "ms-swift", "3.2.0", "swift rlhf --rlhf_type grpo --model m --beta 0.04", "KLA101",
            "kl_in_reward cannot be set: new in 3.10.0", "kl_in_reward=",
        ),
    ],
)  # fmt: skip
def test_a_switch_that_the_release_does_not_have(
    tmp_path: Path, framework: str, version: str, command: str, rule: str, said: str, never: str
) -> None:
    (tmp_path / "run.sh").write_text(command + "\n", encoding="utf-8")
    report = scan([str(tmp_path)], Options(jobs=1, framework_versions={framework: version}))
    (message,) = {each.message for each in report.findings if each.rule == rule}
    assert said in message
    assert never not in message
