"""Files over processes: what hangs or kills its process costs one file, and the whole stays within its budget."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from klaudit.budget import Budget
from klaudit.model import FileResult, Problem
from klaudit.pool import CAN_FORK, scan_files

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="processes cannot be forked here")
PATHS = [f"{number:02}.sh" for number in range(40)]


def fine(path: str) -> FileResult:
    return FileResult(path, parsed=True)


def messages(results: Iterable[FileResult]) -> dict[str, list[str]]:
    return {result.path: [problem.message for problem in result.problems] for result in results}


def budget(*, file: float | None = None, total: float | None = None) -> Budget:
    return Budget(file, total, None if total is None else time.monotonic() + total)


@pytest.mark.parametrize("workers", [1, 2, 7, 100])
def test_every_file_is_answered_for_once(workers: int) -> None:
    results = list(scan_files(fine, PATHS, workers, budget(file=30)))
    assert sorted(result.path for result in results) == PATHS
    assert all(result.parsed for result in results)


def test_nothing_to_scan_starts_nothing() -> None:
    assert list(scan_files(fine, [], 2, budget(file=30, total=30))) == []


def test_without_a_budget_one_worker_is_this_process() -> None:
    seen: list[int] = []

    def scan(path: str) -> FileResult:
        seen.append(os.getpid())
        return fine(path)

    list(scan_files(scan, PATHS, 1, budget()))
    assert set(seen) == {os.getpid()}


def block_signals_and_hang() -> None:
    """As native code does that does not return: no handler of Python runs."""
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.valid_signals()) - {signal.SIGKILL})
    while True:
        time.sleep(60)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_hangs_is_a_row_and_the_rest_is_scanned(workers: int) -> None:
    def scan(path: str) -> FileResult:
        if path in ("05.sh", "06.sh", "39.sh"):
            block_signals_and_hang()
        return fine(path)

    started = time.monotonic()
    found = messages(scan_files(scan, PATHS, workers, budget(file=0.2)))
    assert time.monotonic() - started < 10
    late = ["took longer than 0.2 s: not scanned"]
    assert found == {path: late if path in ("05.sh", "06.sh", "39.sh") else [] for path in PATHS}


def test_the_time_of_a_file_is_its_own_and_not_that_of_the_batch() -> None:
    def scan(path: str) -> FileResult:
        time.sleep(0.1)
        return fine(path)

    assert not any(messages(scan_files(scan, PATHS[:12], 1, budget(file=0.35))).values())


def kill(path: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(path: str) -> None:
    os._exit(0)


def starve(path: str) -> None:
    raise MemoryError


@pytest.mark.parametrize("die", [kill, leave, starve])
def test_a_file_that_ends_its_process_is_a_row_and_the_rest_is_scanned(die: Callable[[str], None]) -> None:
    def scan(path: str) -> FileResult:
        if path == "11.sh":
            die(path)
        return fine(path)

    found = messages(scan_files(scan, PATHS, 2, budget()))
    assert found == {
        path: ["the process that scanned it ended: not scanned"] if path == "11.sh" else [] for path in PATHS
    }


def test_what_the_whole_budget_leaves_no_time_for_is_one_row() -> None:
    def scan(path: str) -> FileResult:
        if path != "00.sh":
            block_signals_and_hang()
        return fine(path)

    started = time.monotonic()
    *results, last = scan_files(scan, PATHS, 2, budget(total=0.5))
    assert time.monotonic() - started < 5
    assert [result.path for result in results] == ["00.sh"]
    assert last.problems == (
        Problem(
            ".",
            None,
            "the time budget of 0.5 s ran out: 39 of 40 files were not scanned: 01.sh, 02.sh, 03.sh, 04.sh, 05.sh, ...",
        ),
    )


def test_a_large_answer_comes_whole() -> None:
    def scan(path: str) -> FileResult:
        return FileResult(path, problems=(Problem(path, None, path * 1_000_000),))

    assert all(
        found == [path * 1_000_000] for path, found in messages(scan_files(scan, PATHS[:4], 2, budget(file=30))).items()
    )


def test_workers_go_when_the_caller_has_had_enough(tmp_path: Path) -> None:
    def scan(path: str) -> FileResult:
        (tmp_path / str(os.getpid())).touch()
        if path != "00.sh":
            block_signals_and_hang()
        return fine(path)

    results = scan_files(scan, PATHS, 2, budget(file=30))
    next(results)
    results.close()  # type: ignore[attr-defined]
    for each in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(each.name), 0)


def test_descriptors_are_closed() -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        list(scan_files(fine, PATHS, 4, budget(file=30)))
    assert len(os.listdir("/dev/fd")) == before


class Diary:
    """Learns each path that it scans, and writes down what it is told."""

    def __init__(self) -> None:
        self.own: list[object] = []
        self.told: list[object] = []

    def scan(self, path: str) -> FileResult:
        self.own.append(path)
        time.sleep(0.002)
        return FileResult(path, problems=tuple(Problem(path, None, str(lesson)) for lesson in self.told))

    def lessons(self) -> tuple[object, ...]:
        lessons = tuple(self.own)
        self.own.clear()
        return lessons

    def learn(self, lessons: tuple[object, ...]) -> None:
        self.told += lessons


def test_what_one_worker_learns_all_others_are_told_once() -> None:
    diary = Diary()
    found = messages(scan_files(diary.scan, PATHS, 2, budget(file=30), diary))
    assert sorted(found) == PATHS
    assert any(found.values())
    for path, told in found.items():
        assert path not in told
        assert len(set(told)) == len(told)
    longest = max(found.values(), key=len)
    assert not set(longest) & {path for path, told in found.items() if told == longest}  # a worker is not told its own


def test_one_worker_has_nobody_to_learn_from() -> None:
    diary = Diary()
    assert not any(messages(scan_files(diary.scan, PATHS, 1, budget(file=30), diary)).values())
