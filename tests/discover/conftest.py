from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import klaudit.discover.files as files


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., None]:
    """Runs git in the test's folder, whatever the configuration of whoever runs the tests."""

    def run(*arguments: str, folder: Path = tmp_path) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, timeout=20)

    return run


@pytest.fixture(params=["git", "walk"])
def listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test twice: as where git is installed, and as where it is not."""
    if request.param == "walk":
        monkeypatch.setattr(files, "list_by_git", lambda folder: None)
    return str(request.param)
