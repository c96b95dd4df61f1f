"""Where a script finds the files it names: below the scanned root, from its working directory or its own folder."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator

from klaudit.readers.shell.text import ROOT, from_path, to_path
from klaudit.readers.source import Source

_MAX_TEXT = 65_536  # of a file whose content becomes text of the script


def absolute(path: str, directory: str | None) -> str | None:
    """`path` as seen from `directory`; None where that is not known, as above the root of the tree."""
    if not path.startswith("/") and directory is None:
        return None
    joined = posixpath.join(directory or "", path)
    full = posixpath.normpath(joined)
    is_lost = joined.startswith(ROOT) and not (full + "/").startswith(ROOT + "/")
    return None if is_lost else full


class Files:
    """The scanned tree as a script sees it.  `load` gives a file by its path relative to the root, None where there is none.

    `at_ending` gives the path of the one script of the tree that an absolute path from another machine can mean, by its ending.
    """

    def __init__(
        self, load: Callable[[str], Source | None], at_ending: Callable[[str], str | None] = lambda path: None
    ) -> None:
        self._load = load
        self._at_ending = at_ending
        self._found: dict[str, Source | None] = {}

    def find(self, path: str, directory: str | None, script: str) -> Source | None:
        """The file that `path` names when `script` runs in `directory`.

        Where a script is started from is not known: the root and the script's own folder are tried as well.
        """
        for candidate in self._candidates(path, directory, script):
            if candidate not in self._found:
                self._found[candidate] = self._read(candidate)
            if (source := self._found[candidate]) is not None:
                return source
        return None

    def at_ending(self, path: str) -> Source | None:
        """The script that an absolute path outside the tree ends like: where a container keeps the tree is not known."""
        if not path.startswith("/") or (path + "/").startswith(ROOT + "/"):
            return None
        found = self._at_ending(posixpath.normpath(to_path(path)))
        return None if found is None else self._read(from_path(found))

    def content(self, path: str, directory: str | None, script: str) -> Source | None:
        """A file small enough for its content to be used as text."""
        source = self.find(path, directory, script)
        return source if source is not None and len(source.data) <= _MAX_TEXT and b"\0" not in source.data else None

    def _candidates(self, path: str, directory: str | None, script: str) -> Iterator[str]:
        for base in (directory, ROOT, posixpath.dirname(script)):
            full = absolute(path, base)
            if full is not None and full.startswith(ROOT + "/"):
                yield full[len(ROOT) + 1 :]

    def _read(self, path: str) -> Source | None:
        try:
            return self._load(to_path(path))
        except (OSError, ValueError):  # unreadable or too large: as good as absent
            return None
