"""The suppressions of all files of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klaudit.gate.directives import MARKER
from klaudit.gate.silencing import Silencer, Suppression
from klaudit.model import Finding
from klaudit.tree import Tree


class Silencers:
    """The suppressions of a tree's files, read when a finding or a caller asks for them."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._silencers: dict[str, Silencer | None] = {}

    def suppressing(self, each: Finding) -> list[Suppression]:
        """Those that a finding meets, the nearest first."""
        silencer = self._of(each.span.path)
        return [] if silencer is None else silencer.suppressing(each)

    def of(self, paths: Iterable[str]) -> Iterator[tuple[str, Silencer]]:
        for path in paths:
            silencer = self._of(path)
            if silencer is not None:
                yield path, silencer

    def _of(self, path: str) -> Silencer | None:
        if path not in self._silencers:
            source = self._tree.readable(path)
            is_marked = source is not None and MARKER in source.data
            self._silencers[path] = Silencer(source) if source is not None and is_marked else None
        return self._silencers[path]
