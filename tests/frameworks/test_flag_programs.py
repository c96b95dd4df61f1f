"""Programs with argparse flags, end to end: config files under flags, abbreviations, classes that scripts parse into."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

_TRAIN = """
from dataclasses import dataclass
from trl import GRPOConfig, ModelConfig, TrlParser

@dataclass
class MyGRPOConfig(GRPOConfig):
    note: str = ""

parser = TrlParser((MyGRPOConfig, ModelConfig))
arguments, model = parser.parse_args_and_config()
"""


def terms(tree: Path, command: str) -> list[tuple[str, str, float | None]]:
    """Placement, estimator and coefficient of what the launch in force trains with."""
    (tree / "run.sh").write_text(command + "\n", encoding="utf-8")
    launches = [setup for setup in scan([str(tree)], Options()).setups if setup.kind == "launch"]
    return [
        (term.placement, term.estimator, term.coefficient) for setup in launches for term in setup.terms if term.active
    ]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("trl grpo --config c.yaml", [("loss", "k3", 0.001)]),
        ("trl grpo --config c.yaml --beta 0.5", [("loss", "k3", 0.5)]),
        ("trl grpo --beta=0.5 --config c.yaml --beta 0", []),
        ("trl rloo --config c.yaml", [("reward", "k1", 0.001)]),
        ("trl dpo --config c.yaml", []),
        ("accelerate launch --config_file c.yaml train.py --num_generations 4", []),  # accelerate's own file
        ("accelerate launch train.py --config c.yaml --num_generations 4", [("loss", "k3", 0.001)]),
    ],
)
def test_trl(tmp_path: Path, command: str, expected: list[tuple[str, str, float]]) -> None:
    (tmp_path / "c.yaml").write_text("beta: 1e-3\nnum_generations: 8\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(_TRAIN, encoding="utf-8")
    assert terms(tmp_path, command) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", [("reward", "k1", 0.01)]),
        ("--algo.kl.est k3 --algo.kl.use", [("loss", "k3", 0.01)]),
        ("--algo.kl.init_coef 0.5 --algo.kl.init=1e-3", [("reward", "k1", 0.001)]),
        ("--algo.kl.use_loss --algo.kl.init_coef 0", []),
    ],
)
def test_openrlhf(tmp_path: Path, flags: str, expected: list[tuple[str, str, float]]) -> None:
    assert terms(tmp_path, f"deepspeed --module openrlhf.cli.train_ppo_ray {flags}") == expected
