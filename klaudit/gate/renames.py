"""Files that were renamed since a commit."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from klaudit.discover.history import ids_of
from klaudit.gate.commit_tree import CommitTree
from klaudit.tree import Tree

_LEAST_ALIKE = 0.5  # share of lines in common, as for git
_MOST_COMPARED = 20_000  # pairs


def renames(new: Iterable[str], gone: Mapping[str, str], now: Tree, then: CommitTree) -> dict[str, str]:
    """New path -> the path that the commit has it under.

    `gone` are the paths that are no longer there, with their ids.  The same bytes first, then those with most lines in common, each gone
    file once: what is left of a file that was copied is new.
    """
    by_id: dict[str, list[str]] = {}
    for path, id in sorted(gone.items()):
        by_id.setdefault(id, []).append(path)
    found: dict[str, str] = {}
    rest: dict[str, Counter[bytes]] = {}
    for path in sorted(new):
        data = now.data(path)
        if data is None:
            continue
        same = [old for id in ids_of(data) for old in by_id.get(id, ()) if old not in found.values()]
        if same:
            found[path] = min(same, key=lambda old: (posixpath.basename(old) != posixpath.basename(path), old))
        else:
            rest[path] = _lines(data)
    if rest:
        left = [path for path in gone if path not in found.values()]
        found |= _alike(rest, left, lambda path: then.data(path))
    return found


def _alike(
    new: Mapping[str, Counter[bytes]], gone: Iterable[str], read: Callable[[str], bytes | None]
) -> dict[str, str]:
    names = {posixpath.basename(path) for path in new}
    suffixes = {posixpath.splitext(path)[1] for path in new}
    candidates = [path for path in gone if posixpath.splitext(path)[1] in suffixes]
    candidates.sort(key=lambda path: (posixpath.basename(path) not in names, path))
    compared = max(_MOST_COMPARED // len(new), 1)
    pairs: list[tuple[float, bool, str, str]] = []
    for old in candidates[:compared]:
        data = read(old)
        lines = _lines(data) if data is not None else Counter()
        for path, its in new.items():
            if (likeness := _likeness(lines, its)) >= _LEAST_ALIKE:
                pairs.append((-likeness, posixpath.basename(path) != posixpath.basename(old), old, path))
    found: dict[str, str] = {}
    for _, _, old, path in sorted(pairs):
        if path not in found and old not in found.values():
            found[path] = old
    return found


def _likeness(one: Counter[bytes], other: Counter[bytes]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def _lines(data: bytes) -> Counter[bytes]:
    return Counter(stripped for line in data.split(b"\n") if (stripped := line.strip()))
