"""The tree with edits, read again: every launch that may have changed, and no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from klaudit.fixes.pool import spread
from klaudit.fixes.snapshot import Trained, resolutions, trained
from klaudit.fixes.watched import WatchedTree, stale
from klaudit.scanner import Scanner


@dataclass(frozen=True, slots=True)
class Reading:
    """What the launches of a file train with, in order, and the other files that this hangs on."""

    launches: tuple[Trained, ...]
    drawn_on: frozenset[str]


@dataclass(frozen=True, slots=True)
class _State:
    contents: Mapping[str, bytes]
    readings: Mapping[str, Reading]


class Rereader:
    """Readings of one tree under different edits.  Each starts from the last one, so that only what differs is read."""

    def __init__(self, root: str, scanner: Scanner, before: Mapping[str, Reading], jobs: int | None) -> None:
        self._root = root
        self._scanner = scanner
        self._before = _State({}, before)
        self._last = self._before
        self._jobs = jobs

    def all(self, contents: Mapping[str, bytes]) -> Mapping[str, Reading]:
        """Every file of the tree, with the files `contents` as they are there."""
        self._last = _State(contents, self._from(self._last, contents, self._last.readings))
        return self._last.readings

    def some(self, contents: Mapping[str, bytes], paths: Collection[str]) -> Mapping[str, Reading]:
        """Only the files `paths`."""
        return self._from(self._before, contents, {path: self._before.readings[path] for path in paths})

    def drawn_on(self) -> dict[str, frozenset[str]]:
        """What each file hangs on, as it is and as it was read last."""
        last = self._last.readings
        return {path: read.drawn_on | last[path].drawn_on for path, read in self._before.readings.items()}

    def _from(self, state: _State, contents: Mapping[str, bytes], wanted: Mapping[str, Reading]) -> dict[str, Reading]:
        changed = {path for path in {*contents, *state.contents} if contents.get(path) != state.contents.get(path)}
        affected = stale(changed, {path: reading.drawn_on for path, reading in state.readings.items()})
        tree = WatchedTree(self._root, dict(contents))
        scanner = self._scanner.over(tree)
        again = [path for path in wanted if path in affected]
        return {**wanted, **dict(spread(lambda path: reading(scanner, tree, path), _sizes(tree, again), self._jobs))}


def reading(scanner: Scanner, tree: WatchedTree, path: str) -> Reading:
    """A file read; one that cannot be read has no launches, so that an edit that makes it unreadable is refused."""
    tree.start()
    try:
        launches = tuple(map(trained, resolutions(scanner, path)))
    except Exception:  # in whatever way
        launches = ()
    return Reading(launches, tree.drawn_on(path))


def _sizes(tree: WatchedTree, paths: Sequence[str]) -> list[tuple[str, int]]:
    sizes = []
    for path in paths:
        try:
            source = tree.source(path)
        except Exception:  # told when it is read
            source = None
        sizes.append((path, len(source.data) if source is not None else 0))
    return sizes
