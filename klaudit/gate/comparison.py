"""A report against a baseline: which findings it lists, which it does not, and what it lists that is gone."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from klaudit.discover.targets import repository_of
from klaudit.findings import catalogue
from klaudit.findings.selection import Selection
from klaudit.gate.baseline_file import Row, row_of
from klaudit.gate.moves import pair
from klaudit.gate.step import Gate
from klaudit.model import Finding, Report


class Comparison(Struct, frozen=True):
    """A report against a baseline.

    `listed` and `fresh` are its findings, known ones and others.  `stale` are rows whose findings are fixed or suppressed (counts:
    how many),
    `unseen` those that the scan can say nothing of.  `moved`: new path -> the path that the baseline has.
    """

    listed: tuple[Finding, ...]
    fresh: tuple[Finding, ...]
    stale: tuple[Row, ...]
    unseen: tuple[Row, ...]
    moved: dict[str, str]
    prefix: str

    def rows(self, *, with_fresh: bool) -> list[Row]:
        """What a baseline should hold: what is there of what it lists, and what it lists beyond the scan."""
        kept = (*self.listed, *self.fresh) if with_fresh else self.listed
        return [*(row_of(finding, self.prefix) for finding in kept), *self.unseen]


def compare(report: Report, gate: Gate, rows: Iterable[Row], file: str) -> Comparison:
    """Each row answers for as many findings as it counts, those with its very message first."""
    folder = os.path.dirname(os.path.realpath(file))
    prefix = prefix_of(folder, gate.targets.root)
    known = _Known(rows)
    findings = [(finding, row_of(finding, prefix)) for finding in report.findings]
    listed = known.take(findings)
    left = [(finding, row) for finding, row in findings if id(finding) not in listed]
    moved = known.follow(folder, [row for _, row in left])
    listed |= known.take([(finding, replace(row, path=moved.get(row.path, row.path))) for finding, row in left])
    # what is suppressed needs no row, and a row to spare would let a new finding pass; a threshold may be another one tomorrow
    doubted = [each.finding for each in report.withheld if each.by == "confidence"]
    known.take([(finding, row_of(finding, prefix)) for finding in doubted])
    covers = _Coverage(report, gate, folder)
    leftover = [(row, covers.covers(row)) for row in known.leftover()]
    return Comparison(
        tuple(finding for finding, _ in findings if id(finding) in listed),
        tuple(finding for finding, _ in findings if id(finding) not in listed),
        tuple(row for row, is_seen in leftover if is_seen),
        tuple(row for row, is_seen in leftover if not is_seen),
        moved,
        prefix,
    )


def prefix_of(folder: str, root: str) -> str:
    """What leads from the folder of a baseline to the root of a scan, with a `/` at its end."""
    return PurePath(os.path.relpath(root, folder)).as_posix() + "/"


class _Known:
    """What the baseline lists and no finding has answered for yet: (path, rule, fingerprint) -> message -> count."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._left: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        for row in rows:  # of a row that a merge has doubled the greater count, not the sum
            messages = self._left[row.path, row.rule, row.fingerprint]
            messages[row.message] = max(messages[row.message], row.count)
        self._paths = {path for path, _, _ in self._left}

    def take(self, findings: Sequence[tuple[Finding, Row]]) -> set[int]:
        """Ids of the findings that are listed; each takes one off its row."""
        taken: set[int] = set()
        for by_message in (True, False):
            for finding, row in findings:
                left = self._left.get((row.path, row.rule, row.fingerprint))
                if not left or id(finding) in taken:
                    continue
                message = row.message if by_message else next(iter(+left), "")
                if left[message] > 0:
                    left[message] -= 1
                    taken.add(id(finding))
        return taken

    def follow(self, folder: str, fresh: Sequence[Row]) -> dict[str, str]:
        """New path -> listed path, for files that were renamed or moved."""
        new: dict[str, Counter[Hashable]] = defaultdict(Counter)
        for row in fresh:
            if row.path not in self._paths:
                new[row.path][row.rule, row.fingerprint, row.message] += 1
        gone: dict[str, Counter[Hashable]] = defaultdict(Counter)
        disk = _Disk(folder)
        for row in self.leftover() if new else ():
            if not disk.has(row.path):
                gone[row.path][row.rule, row.fingerprint, row.message] += row.count
        return pair(gone, new)

    def leftover(self) -> list[Row]:
        return sorted(
            Row(*key, message, count)
            for key, messages in self._left.items()
            for message, count in messages.items()
            if count > 0
        )


class _Coverage:
    """Whether the findings of a row would have been seen, if they were still there."""

    def __init__(self, report: Report, gate: Gate, folder: str) -> None:
        root = gate.targets.root
        self._prefix = prefix_of(root, folder)
        self._disk = _Disk(root)
        self._folders = tuple("" if each == "." else each + "/" for each in gate.targets.folders)
        self._files = frozenset(gate.files)
        self._unread = frozenset(problem.path for problem in report.errors)
        self._selection = Selection(gate.options, root)
        self._names = {id: name for name, id in catalogue.names().items()}
        # a part of a repository is judged without the rest of it, and may look better than it is
        self._is_whole = root == repository_of(root) or is_below(folder, root)
        self._is_partial = bool(gate.options.frameworks) or "." in self._unread

    def covers(self, row: Row) -> bool:
        path = os.path.normpath(self._prefix + row.path).replace(os.sep, "/")
        if not self._is_whole or self._is_partial or path in self._unread or path.startswith("../"):
            return False
        if not self._selection.wants(row.rule, self._names.get(row.rule, ""), path):
            return False
        return path in self._files or (path.startswith(self._folders) and not self._disk.has(path))


class _Disk:
    """Which files there are below a folder, by exact name, also where the file system does not tell `a.sh` from `A.sh`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: dict[str, frozenset[str]] = {}

    def has(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(Path(self._folder, folder)))
            except (OSError, ValueError):
                self._names[folder] = frozenset()
        return name in self._names[folder]


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
