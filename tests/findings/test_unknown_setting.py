"""KLA204 where one spelling is two settings, each of its own versions."""

from __future__ import annotations

from pathlib import Path

import klaudit

CONFIG = """\
algorithm:
  adv_estimator: grpo
worker:
  actor:
    use_kl_loss: true
    kl_loss_coef: 5.0e-3
    kl_loss_type: low_var_kl
"""


def test_a_setting_of_the_version_is_known(tmp_path: Path) -> None:
    """Up to there `worker.actor.use_kl_loss` switches; later one of that name is only overwritten from another."""
    (tmp_path / "train.yaml").write_text(CONFIG)
    report = klaudit.scan(tmp_path, framework_versions={"easyr1": "0.2.0.dev0"})
    assert [finding.rule for finding in report.findings] == ["KLA101"]
