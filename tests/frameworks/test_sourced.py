"""A script that holds no word of interest itself, but sources one that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

LIBRARY = """train() {
  python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
    actor_rollout_ref.actor.use_kl_loss=$1 actor_rollout_ref.actor.kl_loss_type=low_var_kl
}
"""


@pytest.mark.parametrize(
    "script",
    [
        "source lib/train.sh\ntrain True\n",
        ". ./lib/train.sh; train True\n",
        'cd lib && source "train.sh"\ntrain True\n',
        "if true; then . lib/train.sh; fi\ntrain True\n",
        "source lib/through.sh\ntrain True\n",
    ],
)
def test_the_prefilter_follows_what_is_sourced(tmp_path: Path, script: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "train.sh").write_text(LIBRARY)
    (tmp_path / "lib" / "through.sh").write_text(". lib/train.sh\n")
    (tmp_path / "main.sh").write_text(script)
    with_it, without = (scan([str(tmp_path)], Options(jobs=1, prefilter=prefilter)) for prefilter in (True, False))
    assert [(setup.path, setup.verdict) for setup in with_it.setups] == [("main.sh", "biased")]
    assert with_it.setups == without.setups


def test_scripts_that_source_each_other_end(tmp_path: Path) -> None:
    for at in range(500):
        (tmp_path / f"s{at}.sh").write_text(f"source s{(at + 1) % 500}.sh\n")
    assert scan([str(tmp_path)], Options(jobs=1)).errors == ()
