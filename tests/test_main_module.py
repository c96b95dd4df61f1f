"""`python -m klaudit` ends with the command's own status."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["scan", "no-such-folder"], 2)])
def test_status(arguments: list[str], status: int) -> None:
    done = subprocess.run([sys.executable, "-m", "klaudit", *arguments], capture_output=True, check=False)
    assert done.returncode == status
