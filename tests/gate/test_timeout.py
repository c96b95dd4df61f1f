"""Time budgets on the command line and in the library: what was not scanned is said, and the status is 2."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from klaudit.cli.alarm import OutOfTimeError, ends_after
from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.model import FileResult
from klaudit.pool import CAN_FORK
from klaudit.scanner import Scanner
from tests.gate.scratch import LAUNCH, Folder, Repository

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="processes cannot be forked here")


def klaudit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "klaudit", "scan", "--quiet", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write({"a.sh": LAUNCH, "b.sh": LAUNCH})
    return folder


def test_a_file_over_its_budget_is_an_error(folder: Folder) -> None:
    done = klaudit(folder.root, "--file-timeout", "0.0001")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "a.sh: error: took longer than 0.0001 s: not scanned"


def test_a_scan_over_its_budget_is_an_error(folder: Folder) -> None:
    done = klaudit(folder.root, "--timeout", "0.0001")
    assert done.returncode == 2
    assert ".: error: the time budget of 0.0001 s ran out: 2 of 2 files were not scanned: a.sh, b.sh" in done.stderr


@pytest.mark.parametrize("option", ["--timeout", "--file-timeout"])
def test_a_budget_that_suffices_changes_nothing(folder: Folder, option: str) -> None:
    done = klaudit(folder.root, option, "50")
    assert done.returncode == 1
    assert done.stdout == klaudit(folder.root, "--file-timeout", "0").stdout


@pytest.mark.parametrize(
    "arguments",
    [("--timeout", "0"), ("--timeout", "-1"), ("--timeout", "x"), ("--file-timeout", "-1"), ("--file-timeout", "")],
)
def test_what_is_no_time_is_an_error(folder: Folder, arguments: tuple[str, str]) -> None:
    assert klaudit(folder.root, *arguments).returncode == 2


def test_a_file_that_hangs_leaves_the_others_their_results(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Scanner.scan

    def hang(self: Scanner, path: str) -> FileResult:
        if path == "a.sh":
            time.sleep(60)
        return judge(self, path)

    monkeypatch.setattr(Scanner, "scan", hang)
    report = scan([str(folder.root)], Options(jobs=1, file_timeout=2.0))
    assert [(error.path, error.message) for error in report.errors] == [("a.sh", "took longer than 2 s: not scanned")]
    assert [finding.span.path for finding in report.findings] == ["b.sh"]


def test_without_time_to_look_back_everything_counts_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path, {"a.sh": LAUNCH})
    judge = Scanner.scan

    def hang(self: Scanner, path: str) -> FileResult:
        if type(self.tree).__name__ == "CommitTree":
            time.sleep(60)
        return judge(self, path)

    monkeypatch.setattr(Scanner, "scan", hang)
    report = scan([str(repository.root)], Options(jobs=1, timeout=3.0, diff_base="HEAD"))
    assert [finding.span.path for finding in report.findings] == ["a.sh"]
    assert "the time budget of 3 s ran out" in report.errors[0].message
    report = scan([str(repository.root)], Options(jobs=1, file_timeout=2.0, diff_base="HEAD"))
    assert len(report.findings) == 1 and report.errors == ()
    assert "a.sh: cannot be read in HEAD" in report.remarks[0]


def test_the_alarm_ends_what_nothing_else_ends() -> None:
    started = time.monotonic()
    with pytest.raises(OutOfTimeError, match=r"budget of 0\.01 s"), ends_after(0.01):
        time.sleep(30)
    assert time.monotonic() - started < 10
    with ends_after(None):
        pass
    with ends_after(30):
        pass
