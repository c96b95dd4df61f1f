"""The documentation's tables are those of the theory, and its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_tables_are_up_to_date() -> None:
    tool = ROOT / "tools" / "make_theory_table.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run tools/make_theory_table.py\n{done.stderr}"


def test_the_example_for_unit_tests_passes() -> None:
    pytest.importorskip("torch")
    (source,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "verify.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    names: dict[str, object] = {}
    exec(compile(source, "verify.md", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


@pytest.mark.parametrize("page", ["theory.md", "claims.md", "verify.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target
