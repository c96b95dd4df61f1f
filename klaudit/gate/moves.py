"""Files that were renamed or moved, told from what is known to be wrong with them."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Hashable, Mapping


def pair(gone: Mapping[str, Counter[Hashable]], new: Mapping[str, Counter[Hashable]]) -> dict[str, str]:
    """New path -> the gone one it is, where nothing else comes into question.

    Both hold what is wrong in the file.  They are the same file if that is the same, name or folder has stayed, and neither has another
    partner that is as near: of the candidates the one with more of the path's end in common, then of its beginning, is nearer.
    """
    best_of_new = {path: _nearest(path, wrong, gone) for path, wrong in new.items()}
    best_of_gone = {path: _nearest(path, wrong, new) for path, wrong in gone.items()}
    return {path: old for path, old in best_of_new.items() if old is not None and best_of_gone[old] == path}


def _nearest(path: str, wrong: Counter[Hashable], others: Mapping[str, Counter[Hashable]]) -> str | None:
    """The one nearest path with the same contents; None where there is none, or more than one."""
    ranked = sorted(
        ((_nearness(path, other), other) for other, its in others.items() if its == wrong and _is_akin(path, other)),
        reverse=True,
    )
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1]


def _is_akin(one: str, other: str) -> bool:
    return posixpath.basename(one) == posixpath.basename(other) or posixpath.dirname(one) == posixpath.dirname(other)


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
