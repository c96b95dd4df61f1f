"""A tree that notes which files are asked for: what a launch hangs on, and must be read again when one of them changes."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping

from klaudit.discover.suffixes import SHELL, suffix_of
from klaudit.frameworks.pins import is_requirements
from klaudit.readers.source import Source
from klaudit.tree import Tree


class WatchedTree(Tree):
    def __init__(self, root: str, overlay: dict[str, bytes] | None = None) -> None:
        super().__init__(root, overlay)
        self._asked: list[str] = []

    def source(self, path: str) -> Source | None:
        self._asked.append(posixpath.normpath(path))
        return super().source(path)

    def start(self) -> None:
        """From here on files are noted for another reader."""
        self._asked.clear()

    def drawn_on(self, path: str) -> frozenset[str]:
        """The files asked for since `start` by the reading of `path`, itself only if it was asked for more than once."""
        asked = list(self._asked)
        if path in asked:
            asked.remove(path)
        return frozenset(asked)


def stale(changed: Collection[str], drawn_on: Mapping[str, frozenset[str]]) -> set[str]:
    """Of the files in `drawn_on`, with what each draws on, those that may read otherwise once the files `changed` have changed.

    Scripts are read anew by whoever sources or calls them.  Configs, modules and pins of versions are read once and remembered for the
    whole tree: once anybody draws on one of them, all files may.
    """
    for path in changed:
        if not _is_read_anew(path) and any(path in asked for asked in drawn_on.values()):
            return set(drawn_on)
    changed = frozenset(changed)
    return {path for path, asked in drawn_on.items() if path in changed or not asked.isdisjoint(changed)}


def _is_read_anew(path: str) -> bool:
    return suffix_of(path) in SHELL and not is_requirements(posixpath.basename(path))
