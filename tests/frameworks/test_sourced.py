"""A script that holds no word of interest itself, but sources one that does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.frameworks.sourced import _sourced_scripts

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


# How it is said in one expression, which takes several times as long to search for.
PLAIN = re.compile(
    rb"(?:^|[;&|{(]|\b(?:then|do|else))[ \t]*(?:source|\.)[ \t]+[\"']?([^\s;&|)\"']{1,400})", re.MULTILINE
)
PIECES = st.sampled_from(
    [b"source", b".", b" ", b"\t", b"\n", b"\r", *(bytes((byte,)) for byte in b";&|{()'\"-_x"), b"then", b"do", b"else"]
)


@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_scripts_are_sourced_where_a_command_begins(text: bytes) -> None:
    assert list(_sourced_scripts(text)) == [match[1] for match in PLAIN.finditer(text)]
