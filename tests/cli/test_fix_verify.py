"""`klaudit fix --verify`: each migration's score weight and exact gradient bias, before and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from klaudit.cli import fix

pytest.importorskip("torch")

SCRIPT = """python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=rloo \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.actor.kl_loss_type={word} \\
    actor_rollout_ref.actor.kl_loss_coef=0.01
"""


@pytest.mark.parametrize(("word", "weight"), [("low_var_kl", "0.01 - 0.01*exp(-d)"), ("kl", "0.01")])
def test_before_is_biased_and_after_is_not(tmp_path: Path, word: str, weight: str) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.format(word=word), encoding="utf-8")
    result = CliRunner().invoke(fix.command, [str(tmp_path), "--verify", "--framework-version", "verl=0.9.1"])
    before, after = (
        line.strip() for line in result.stderr.splitlines() if line.startswith(("  before  w", "  after   w"))
    )
    assert before.startswith(f"before  w(d) = {weight}: ")
    assert "bias 0 per token" not in before
    assert after == "after   w(d) = 0.01*d: unbiased; bias 0 per token, 0 over sequences"


def test_without_torch_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix, "find_spec", lambda name: None)
    result = CliRunner().invoke(fix.command, [str(tmp_path), "--verify"], standalone_mode=False)
    assert isinstance(result.exception, Exception)
    assert "klaudit[tensor]" in str(result.exception)
