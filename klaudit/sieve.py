"""The files of a scan that may matter: each read once, most dropped before anything is parsed."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence

from klaudit.budget import Budget
from klaudit.gate.directives import MARKER
from klaudit.model import FileResult, Problem
from klaudit.scanner import Scanner
from klaudit.tree import TooLargeError

# What a byte of a file that passed the prefilter costs, in seconds, by suffix.
_COST = {".py": 1.3e-6, ".ipynb": 0.4e-6, ".yaml": 0.6e-6, ".yml": 0.6e-6}
_COST_OF_OTHERS = 0.8e-6
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Sieve:
    """What it has seen so far: `marked` hold klaudit's comments, `failures` could not be read, `cost` is the work ahead in seconds."""

    def __init__(self, scanner: Scanner, budget: Budget, *, prefilter: bool) -> None:
        self._scanner = scanner
        self._budget = budget
        self._prefilter = prefilter
        self.marked: list[str] = []
        self.failures: list[FileResult] = []
        self.dropped = 0
        self.cost = 0.0

    def kept(self, files: Sequence[str]) -> Iterator[str]:
        """Those that may matter, looked at when they are asked for: code first, which launches ask about, and of both the most work, so
        that no worker is left with the long end."""
        tree = self._scanner.tree
        costs = {path: tree.size(path) * _COST.get(os.path.splitext(path)[1], _COST_OF_OTHERS) for path in files}
        for path in sorted(files, key=lambda path: (not path.endswith(".py"), -costs[path])):
            if self._budget.is_spent or self._may_matter(
                path
            ):  # without time to look it will be among those not scanned
                self.cost += costs[path]
                yield path
            else:
                self.dropped += 1

    def _may_matter(self, path: str) -> bool:
        tree = self._scanner.tree
        try:
            source = tree.source(path)
        except (OSError, TooLargeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            self.failures.append(FileResult(path, problems=(Problem(path, None, why),)))
            return False
        if source is None:
            return False
        if MARKER in source.data:  # whatever else the file holds: the comment itself may be wrong
            self.marked.append(path)
        if not self._prefilter or self._scanner.may_matter(path, source.data):
            return True
        if path.endswith(".py") and source.data.startswith(_UTF_16):
            if self._scanner.may_matter(path, source.data.replace(b"\0", b"")):
                why = "not Python: in UTF-16, which Python does not read"
                self.failures.append(FileResult(path, problems=(Problem(path, 1, why),)))
            return False
        tree.forget(path)  # most files: their bytes would only fill memory
        return False
