"""Launches of a tree's own programs, whose command lines need not hold a word of any rule."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.frameworks.programs import Programs
from klaudit.tree import Tree

_PROGRAM = "from trl import GRPOConfig, TrlParser\n(config,) = TrlParser((GRPOConfig,)).parse_args_and_config()\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.sh", "accelerate launch rl/go.py --beta 0.25\n"),
        ("a.sh", "cd rl\ntorchrun go.py --beta 0.25\n"),
        ("a.sh", "python -m rl.go --beta 0.25\n"),
        ("a.sh", "python -m \\\n  rl.go --beta 0.25\n"),
        ("jobs/a.yaml", "run: |\n  torchrun rl/go.py --beta 0.25\n"),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": "!python rl/go.py --beta 0.25"}]})),
    ],
)
def test_a_launch_without_a_word_of_the_rules_is_seen(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, {"rl/go.py": _PROGRAM, name: content})
    (setup,) = (setup for setup in scan([str(tmp_path)], Options(jobs=1)).setups if setup.path == name)
    assert [(term.coefficient, term.active) for term in setup.terms] == [(0.25, True)]


def test_a_single_script_finds_the_program_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"go.py": _PROGRAM, "a.sh": "python go.py --beta 0.25\n"})
    (setup,) = scan([str(tmp_path / "a.sh")], Options(jobs=1)).setups
    assert setup.terms[0].coefficient == 0.25


def test_other_programs_leave_a_script_unread(tmp_path: Path) -> None:
    write(tmp_path, {"go.py": "print(1)\n", "a.sh": "python go.py --beta 0.25\n"})
    assert scan([str(tmp_path)], Options(jobs=1)).files_parsed == 0


@pytest.mark.parametrize("data", [b"a" * 5_000_000, b".py" * 500_000, b"a.py " * 500_000, b" -m" * 500_000])
def test_names_are_looked_for_in_bounded_time(tmp_path: Path, data: bytes) -> None:
    started = time.process_time()
    assert not list(Programs(Tree(tmp_path), ()).named_in(data, "a.sh"))
    assert time.process_time() - started < 2
