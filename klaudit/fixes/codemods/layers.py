"""Edits made one after another, as edits of the text that the first of them found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from klaudit.model import Edit


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `start`..`end` of the original, what stands there now, and which steps made it so."""

    start: int
    end: int
    text: bytes
    steps: frozenset[int]


class Layers:
    """The text of a file after any number of steps, each of them edits of what the one before left."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._original = data
        self._pieces: list[Piece] = []
        self._steps = 0

    @property
    def data(self) -> bytes:
        parts, at = [], 0
        for piece in self._pieces:
            parts += [self._original[at : piece.start], piece.text]
            at = piece.end
        return b"".join((*parts, self._original[at:]))

    @property
    def steps(self) -> int:
        return self._steps

    def add(self, edits: Iterable[Edit]) -> None:
        """One step: edits with offsets into `data`, of which none touches another."""
        for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
            self._apply(edit, self._steps)
        self._steps += 1

    def edits(self, steps: Iterable[int]) -> tuple[Edit, ...]:
        """What is left of some steps, as edits of the original."""
        wanted = set(steps)
        return tuple(
            Edit(self._path, piece.start, piece.end, piece.text.decode("utf-8"))
            for piece in self._pieces
            if piece.steps & wanted
        )

    def together(self) -> list[set[int]]:
        """Steps in groups: those that touch the same text cannot be told apart any more."""
        groups: list[set[int]] = [{step} for step in range(self._steps)]
        for piece in self._pieces:
            joined = [group for group in groups if group & piece.steps]
            groups = [group for group in groups if not group & piece.steps]
            groups.append(set().union(*joined))
        return sorted(groups, key=min)

    def _apply(self, edit: Edit, step: int) -> None:
        """`shift` is how much longer the text is than the original before a piece."""
        shift, kept, touched = 0, [], []
        for piece in self._pieces:
            start = piece.start + shift
            end = start + len(piece.text)
            if end < edit.start or start > edit.end:
                kept.append(piece)
            else:
                touched.append((start, end, piece))
            shift += len(piece.text) - (piece.end - piece.start)
        text = edit.replacement.encode("utf-8")
        if not touched:
            start, end = self._in_original(edit.start), self._in_original(edit.end)
            new = Piece(start, end, text, frozenset({step}))
        else:
            first, last = touched[0], touched[-1]
            data = self.data
            low, high = min(first[0], edit.start), max(last[1], edit.end)
            start = first[2].start - (first[0] - low)
            end = last[2].end + (high - last[1])
            steps = frozenset({step}).union(*(piece.steps for _, _, piece in touched))
            new = Piece(start, end, data[low : edit.start] + text + data[edit.end : high], steps)
        self._pieces = sorted((*kept, new), key=lambda piece: (piece.start, piece.end))

    def _in_original(self, offset: int) -> int:
        """The place in the original of one in the text that lies in no piece."""
        shift = 0
        for piece in self._pieces:
            if piece.start + shift + len(piece.text) > offset:
                break
            shift += len(piece.text) - (piece.end - piece.start)
        return offset - shift
