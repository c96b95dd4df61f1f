"""Source in the tree whose trainer reads an option that the started program does not declare: the launch stops before training."""

from __future__ import annotations

from pathlib import Path

import pytest

import klaudit
from klaudit.model import Report

DECLARED = 'parser.add_argument("--use_kl_loss", action="store_true")\n'
RAY = (
    "import argparse\nparser = argparse.ArgumentParser()\n"
    'parser.add_argument("--init_kl_coef", type=float, default=0.01)\n'
    'parser.add_argument("--use_kl_estimator_k3", action="store_true")\n'
)
TRAINER = "class PPOTrainer:\n    def step(self):\n        {line}\n            pass\n"
READS = "if self.args.use_kl_loss:"
LAUNCH = "deepspeed --module openrlhf.cli.{program} --init_kl_coef 0.001\n"


def scan(folder: Path, *, program: str = RAY, line: str = READS, name: str = "train_ppo") -> Report:
    files = {
        "openrlhf/cli/train_ppo_ray.py": RAY + DECLARED,
        "openrlhf/cli/train_ppo.py": program,
        "openrlhf/trainer/ppo_trainer.py": TRAINER.format(line=line),
        "version.txt": "0.5.5.post2",
        "run.sh": LAUNCH.format(program=name),
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return klaudit.scan(folder)


def test_the_launch_stops(tmp_path: Path) -> None:
    report = scan(tmp_path)
    (finding,) = report.findings
    assert (finding.rule, finding.severity, finding.span.path, finding.span.line) == ("KLA204", "error", "run.sh", 1)
    assert "openrlhf/cli/train_ppo.py declares no --use_kl_loss" in finding.message
    assert "openrlhf/trainer/ppo_trainer.py:3 reads: AttributeError" in finding.message
    assert [term.active for term in report.setups[0].terms] == [False, False]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "train_ppo_ray"},
        {"program": RAY + DECLARED},
        {"program": RAY + "add_more(parser)\n"},
        {"program": RAY.replace("ArgumentParser()", "ArgumentParser(parents=[base])")},
        {"program": RAY + "args = parser.parse_args()\nargs.use_kl_loss = False\n"},
        {"program": "from openrlhf.options import parser\n"},  # nobody sees what it declares
        {"line": 'if getattr(self.args, "use_kl_loss", False):'},
        {"line": "if True:  # self.args.use_kl_loss"},
        {"line": "self.args.use_kl_loss = False\n        if True:"},
    ],
)
def test_otherwise_it_does_not(tmp_path: Path, changes: dict[str, str]) -> None:
    report = scan(tmp_path, **changes)
    assert not [finding for finding in report.findings if finding.rule == "KLA204"]
    assert any(term.active for term in report.setups[0].terms)
