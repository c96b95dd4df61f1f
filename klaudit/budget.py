"""How long a scan may take: per file, and in all."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from klaudit.configuration import Options
from klaudit.model import FileResult, Problem

FILE_TIMEOUT = 20.0  # seconds; of 3,400 files of twelve repositories the slowest takes 2.4, and CI machines are shared
_MOST_NAMED = 5


class Budget(Struct, frozen=True):
    """Seconds of wall-clock time, None where there is no limit; `deadline` is a time of `time.monotonic`."""

    file: float | None = None
    total: float | None = None
    deadline: float | None = None

    @classmethod
    def of(cls, options: Options) -> Budget:
        """Starts the clock."""
        total = options.timeout
        return cls(options.file_timeout, total, None if total is None else time.monotonic() + total)

    @property
    def is_spent(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def overdue(self, path: str) -> FileResult:
        """In place of the result of a file that took too long."""
        return FileResult(path, problems=(Problem(path, None, f"took longer than {self.file:g} s: not scanned"),))

    def unscanned(self, paths: Sequence[str], total: int) -> FileResult:
        """In place of the results of the files for which no time was left: one row, however many they are."""
        named = ", ".join(sorted(paths)[:_MOST_NAMED]) + (", ..." if len(paths) > _MOST_NAMED else "")
        what = f"the time budget of {self.total:g} s ran out: {len(paths)} of {total} files were not scanned: {named}"
        return FileResult(".", problems=(Problem(".", None, what),))
