"""KLA208: what is given twice for certain, and what only one branch gives again."""

from __future__ import annotations

from pathlib import Path

import pytest

import klaudit

VERL = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo"


def overridden(folder: Path, name: str, text: str) -> list[int]:
    (folder / "requirements.txt").write_text("trl==0.20.0\nverl==0.7.0\n", encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return [finding.span.line for finding in klaudit.scan(folder, select=["KLA208"]).findings]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.py", "from trl import GRPOConfig\nc = GRPOConfig(beta=0.1)\nc.beta = 0.2\n", [2]),
        ("a.sh", f"{VERL} algorithm.use_kl_in_reward=True \\\n algorithm.use_kl_in_reward=False\n", [1]),
        ("a.sh", f"{VERL} algorithm.use_kl_in_reward=True \\\n algorithm.use_kl_in_reward=$1\n", [1]),
    ],
)
def test_the_last_one_wins(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    assert overridden(tmp_path, name, text) == lines


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nfrom trl import GRPOConfig\nc = GRPOConfig(beta=0.1)\nif sys.argv[1:]:\n    c.beta = 0.2\n",
        "import sys\nfrom trl import GRPOConfig\nc = GRPOConfig()\nif sys.argv[1:]:\n    c.beta = 0.2\nelse:\n    c.beta = 0.3\n",
        """from dataclasses import dataclass
from trl import GRPOConfig

@dataclass
class Mine(GRPOConfig):
    beta: float = 0.1

    def __post_init__(self):
        if self.steps_per_generation is None:
            self.steps_per_generation = self.gradient_accumulation_steps
        elif self.generation_batch_size is not None:
            self.steps_per_generation = self.generation_batch_size // 4
        super().__post_init__()
""",
    ],
)
def test_an_assignment_on_one_branch_leaves_the_others_what_they_had(tmp_path: Path, text: str) -> None:
    assert overridden(tmp_path, "a.py", text) == []
