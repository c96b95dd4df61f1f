"""Files that were renamed or moved, told from what is known to be wrong with them."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from typing import TypeAlias

Wrong: TypeAlias = Mapping[str, Counter[Hashable]]
_Contents: TypeAlias = frozenset[tuple[Hashable, int]]

_MOST_CANDIDATES = 50  # more than these are not told apart


def pair(gone: Wrong, new: Wrong) -> dict[str, str]:
    """New path -> the gone one it is, where nothing else comes into question.

    Both hold what is wrong in the file.  They are the same file if that is the same, name or folder has stayed, and neither has another
    partner that is as near: of the candidates the one with more of the path's end in common, then of its beginning, is nearer.
    """
    gone_by, new_by = _Index(gone), _Index(new)
    found: dict[str, str] = {}
    for path, wrong in new.items():
        old = gone_by.nearest(path, wrong)
        if old is not None and new_by.nearest(old, gone[old]) == path:
            found[path] = old
    return found


class _Index:
    """Paths by what is wrong in them, and by name or folder."""

    def __init__(self, files: Wrong) -> None:
        self._by_name: dict[tuple[_Contents, str], list[str]] = defaultdict(list)
        self._by_folder: dict[tuple[_Contents, str], list[str]] = defaultdict(list)
        for path, wrong in files.items():
            contents = frozenset(wrong.items())
            self._by_name[contents, posixpath.basename(path)].append(path)
            self._by_folder[contents, posixpath.dirname(path)].append(path)

    def nearest(self, path: str, wrong: Counter[Hashable]) -> str | None:
        """The one nearest path with the same contents; None where there is none, or more than one."""
        contents = frozenset(wrong.items())
        named = self._by_name.get((contents, posixpath.basename(path)), [])
        candidates = named or self._by_folder.get((contents, posixpath.dirname(path)), [])
        if not candidates or len(candidates) > _MOST_CANDIDATES:
            return None
        ranked = sorted(((_nearness(path, other), other) for other in candidates), reverse=True)
        return None if len(ranked) > 1 and ranked[0][0] == ranked[1][0] else ranked[0][1]


def _nearness(one: str, other: str) -> tuple[int, int]:
    parts, others = one.split("/"), other.split("/")
    return _shared(parts[::-1], others[::-1]), _shared(parts, others)


def _shared(one: list[str], other: list[str]) -> int:
    count = 0
    for here, there in zip(one, other, strict=False):
        if here != there:
            break
        count += 1
    return count
