"""Text put together from parts of a source, every byte of it mapped back: what an embedded Source is made from."""

from __future__ import annotations

from collections.abc import Sequence

from klaudit.readers.source import Source


class Excerpt:
    """Collects bytes copied from a source, and bytes that stand for a range of it spelled otherwise."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.data = bytearray()
        self._offsets: list[tuple[int, int]] = []
        self._ends: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.data)

    def copy(self, start: int, end: int) -> None:
        """Bytes `start`..`end` as they stand in the source."""
        if start < end:
            self._map(len(self.data), start)
            self.data += self.source.data[start:end]

    def replace(self, text: bytes, start: int, end: int) -> None:
        """`text` where the source has bytes `start`..`end`."""
        if text:
            self._map(len(self.data), start)
            self.data += text
            if len(text) != end - start:
                self._ends[len(self.data)] = end

    def embed(self, *, cell: int | None = None, cells: Sequence[tuple[int, int]] = ()) -> Source:
        """What was collected, as a source of its own."""
        offsets = self._offsets or [(0, 0)]
        return self.source.embed(bytes(self.data), offsets, ends=self._ends, cell=cell, cells=cells)

    def _map(self, here: int, there: int) -> None:
        self._offsets.append((here, there))
