"""The rules of a framework may say that a form of its own is worse than its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

_ACTOR = "gconfig: {n_samples: 4}\nactor: {%s, kl_estimator: %s, path: m}\n"
_REF = "ref: {path: m}\n"


@pytest.mark.parametrize(
    ("text", "rule", "severity"),
    [
        (_ACTOR % ("kl_ctl: 0.05", "k1"), "KLA104", "error"),  # no reference model at all: likely tokens are punished
        (_ACTOR % ("kl_ctl: 0.05", "k2"), "KLA104", "error"),
        (_ACTOR % ("kl_ctl: 0.05", "k3"), "KLA102", "error"),
        (_ACTOR % ("kl_ctl: 0.05", "k2") + _REF, "KLA104", "warning"),
    ],
)
def test_a_penalty_without_a_reference(tmp_path: Path, text: str, rule: str, severity: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    report = scan([str(tmp_path)], Options(jobs=1, framework_versions={"areal": "1.0.4"}))
    assert [each.severity for each in report.findings if each.rule == rule] == [severity]
