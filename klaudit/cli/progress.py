"""A progress bar for scans that take long: on a terminal only, and on standard error, so that it is in nobody's way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 0.7  # seconds before it appears


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """Gives a function to call with how many files are done and how many there are; None where there is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    bar = _Bar()
    try:
        yield bar.advance
    finally:
        bar.stop()


class _Bar:
    def __init__(self) -> None:
        self._due = time.monotonic() + PATIENCE
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def advance(self, done: int, total: int) -> None:
        if self._progress is None:
            if time.monotonic() < self._due or done >= total:
                return
            self._start(total)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total)

    def _start(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("Scanning"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("scan", total=total)
        self._progress.start()

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
