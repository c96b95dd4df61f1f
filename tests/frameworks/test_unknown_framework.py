"""A configuration that names its KL in so many words, but no framework: only a turned sign is said, and asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

CONFIG = "loss:\n  kl_type: {kl_type}\n  kl_coef: {kl_coef}\n  reference_model: org/teacher\n"


@pytest.mark.parametrize(
    ("kl_type", "kl_coef", "rules"), [("k1", -1.0, ["KLA301"]), ("k1", 0.1, []), ("k3", 0.1, []), ("other", 1.0, [])]
)
def test_only_the_sign_is_asked_about(tmp_path: Path, kl_type: str, kl_coef: float, rules: list[str]) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG.format(kl_type=kl_type, kl_coef=kl_coef), encoding="utf-8")
    report = scan([str(tmp_path)], Options())
    assert [finding.rule for finding in report.findings] == rules
    assert [term.active for setup in report.setups for term in setup.terms] == [None]
    assert all(finding.confidence == "low" for finding in report.findings)
