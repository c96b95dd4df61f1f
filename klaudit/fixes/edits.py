"""Edits of many files together: none overlaps another, all are applied or none."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from klaudit.fixes.page import CannotEditError
from klaudit.model import Edit


def by_path(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    """Edits of each file in order, those that were made twice once."""
    files: dict[str, list[Edit]] = {}
    for edit in sorted(set(edits), key=lambda edit: (edit.path, edit.start, edit.end, edit.replacement)):
        files.setdefault(edit.path, []).append(edit)
    return files


def conflict(edits: Iterable[Edit]) -> tuple[Edit, Edit] | None:
    """Two different edits that touch the same bytes, or insert at the same place."""
    for ordered in by_path(edits).values():
        for one, other in pairwise(ordered):
            if other.start < one.end or one.start == one.end == other.start == other.end:
                return one, other
    return None


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The file with edits of it applied.  Raises CannotEditError where they overlap or lie outside."""
    edits = list(edits)
    if conflict(edits) is not None:
        raise CannotEditError("edits overlap")
    parts, at = [], 0
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end)):
        if not at <= edit.start <= edit.end <= len(data):
            raise CannotEditError("an edit lies outside the file")
        parts += [data[at : edit.start], edit.replacement.encode("utf-8")]
        at = edit.end
    return b"".join((*parts, data[at:]))
