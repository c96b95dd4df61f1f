"""A finding points at the setting that a reader would change."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

_SKYRL = """\
trainer:
  algorithm:
    use_kl_loss: {loss}
    use_kl_in_reward: {reward}
    kl_estimator_type: k1
    {flag}: true
"""
_SLIME = "python train.py --advantage-estimator grpo \\\n {} \\\n --kl-loss-coef 0.005 \\\n {} \\\n {}\n"
_RLINF = """\
runner: {task_type: reasoning}
actor: {training_backend: fsdp}
algorithm:
  kl_penalty_type: low_var_kl
  kl_beta: 0.001
  adv_type: grpo
"""
_ON, _K2, _WEIGHTED = "--use-kl-loss", "--kl-loss-type k2", "--use-unbiased-kl"


@pytest.mark.parametrize(
    ("name", "text", "framework", "version", "rule", "line"),
    [
        # the flag that decides the estimator, and not the estimator's own setting, which it overrides
        ("c.yaml", _SKYRL.format(loss="false", reward="true", flag="use_abs_kl"), "skyrl-train", "0.2.0", "KLA104", 6),
        ("c.yaml", _SKYRL.format(loss="false", reward="true", flag="use_kl_estimator_k3"), "skyrl-train", "0.2.0", "KLA102", 6),
        # a form that is wrong in the loss: its choice, wherever the switch stands
        ("r.sh", _SLIME.format(_ON, _K2, _WEIGHTED), "slime", "0.3.0", "KLA105", 4),
        ("r.sh", _SLIME.format(_K2, _WEIGHTED, _ON), "slime", "0.3.0", "KLA105", 2),
        # of several settings that decide together, the one that speaks of estimators
        ("c.yaml", _RLINF, "rlinf", "0.3.0", "KLA105", 4),
        # k3 is wrong where it is: the switch
        ("r.sh", _SLIME.format("--kl-loss-type k3", "--seed 1", _ON), "slime", "0.3.0", "KLA101", 5),
    ],
)  # fmt: skip
def test_where_a_finding_points(
    tmp_path: Path, name: str, text: str, framework: str, version: str, rule: str, line: int
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    report = scan([str(tmp_path)], Options(jobs=1, framework_versions={framework: version}))
    assert [each.span.line for each in report.findings if each.rule == rule] == [line]


@pytest.mark.parametrize(
    ("text", "framework", "version", "rule", "named"),
    [
        (_SKYRL.format(loss="false", reward="true", flag="use_abs_kl"), "skyrl-train", "0.2.0", "KLA104", "trainer.algorithm.use_abs_kl"),
        (_RLINF, "rlinf", "0.3.0", "KLA105", "actor.training_backend"),
        (_RLINF, "rlinf", "0.3.0", "KLA105", "algorithm.kl_penalty_type"),
    ],
)  # fmt: skip
def test_what_decides_the_estimator_is_named(
    tmp_path: Path, text: str, framework: str, version: str, rule: str, named: str
) -> None:
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    report = scan([str(tmp_path)], Options(jobs=1, framework_versions={framework: version}))
    (finding,) = (each for each in report.findings if each.rule == rule)
    assert f"{named}=" in finding.message
    assert [each.setting for each in finding.related].count(named) == 1
