"""The tree under scan as a commit has it."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from klaudit.discover.git import list_by_git
from klaudit.discover.history import Entry
from klaudit.tree import Tree

_MOST_LINKS = 40  # followed for one path, as by the kernel


class CommitTree(Tree):
    """Paths as in the tree on disk, contents of a commit.

    What git ignores belongs to no commit and is taken from the disk: generated version files and local settings are the same then and
    now, as far as anybody can know.
    """

    def __init__(self, root: str, entries: Mapping[str, Entry], read: Callable[[str], bytes]) -> None:
        """`entries` are those below the root, `read` gives the bytes of an id."""
        super().__init__(root)
        self._entries = entries
        self._read_id = read
        self._links: dict[str, str] = {}
        self._disk = Tree(root)

    def entry(self, path: str) -> Entry | None:
        """The file that a path leads to, links followed."""
        real = self._follow(posixpath.normpath(path))
        entry = self._entries.get(real) if real is not None else None
        return entry if entry is not None and entry.kind == "file" else None

    def size(self, path: str) -> int:
        return len(self.data(path) or b"")

    def _read(self, path: str) -> bytes | None:
        real = self._follow(path)
        if real is None:
            return None
        entry = self._entries.get(real)
        if entry is not None and entry.kind == "file":
            return self._read_id(entry.id)
        source = self._disk.source(real) if self._is_ignored(real) else None
        return None if source is None else source.data

    def _list(self, folder: str) -> tuple[frozenset[str], frozenset[str]]:
        real = self._follow(folder or ".")
        if real is None:
            return frozenset(), frozenset()
        if real not in self._listings:
            files: set[str] = set()
            folders: set[str] = set()
            for name in self._names.get(real, ()):
                self._place(posixpath.normpath(posixpath.join(real, name)), name, files, folders)
            for name in self._disk.files(real):
                if self._is_ignored(posixpath.normpath(posixpath.join(real, name))):
                    files.add(name)
            for name in self._disk.folders(real):
                if self._is_ignored(posixpath.normpath(posixpath.join(real, name))):
                    folders.add(name)
            self._listings[real] = (frozenset(files), frozenset(folders))
        return self._listings[real]

    def _place(self, path: str, name: str, files: set[str], folders: set[str]) -> None:
        """Puts what stands at a path where it belongs; links are what they lead to."""
        real = self._follow(path)
        if real is None:
            return
        entry = self._entries.get(real)
        if entry is not None and entry.kind == "file":
            files.add(name)
        elif real == "." or self._is_folder(real):
            folders.add(name)
        elif self._is_ignored(real) and self._disk.is_file(real):
            files.add(name)

    @cached_property
    def _names(self) -> Mapping[str, set[str]]:
        """What stands directly in each folder."""
        names: dict[str, set[str]] = defaultdict(set)
        for path in self._entries:
            while path != ".":
                folder, name = posixpath.split(path)
                folder = folder or "."
                if name in names[folder]:
                    break
                names[folder].add(name)
                path = folder
        return names

    def _follow(self, path: str) -> str | None:
        """The path without links; None where it leads out of the root, or round in a circle."""
        done: list[str] = []
        todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                if not done or not self._is_folder("/".join(done)):
                    return None
                done.pop()
                continue
            done.append(part)
            here = "/".join(done)
            entry = self._entries.get(here)
            if entry is None or entry.kind != "link":
                continue
            links += 1
            if here not in self._links:
                self._links[here] = os.fsdecode(self._read_id(entry.id))
            target = self._links[here]
            if links > _MOST_LINKS or target.startswith("/"):
                return None
            done.pop()
            todo += [step for step in reversed(target.split("/")) if step not in ("", ".")]
        return "/".join(done) or "."

    def _is_folder(self, real: str) -> bool:
        return real in self._names or (self._is_ignored(real) and self._disk.is_folder(real))

    # --- what no commit has -----------------------------------------------------------------------------------------------------------

    def _is_ignored(self, path: str) -> bool:
        known, folders = self._known
        if known is None or path in folders or path in self._entries:
            return False
        while path:  # what lies below a path that git knows lies in a repository of its own
            if path in known:
                return False
            path = posixpath.dirname(path)
        return True

    @cached_property
    def _known(self) -> tuple[frozenset[str] | None, frozenset[str]]:
        """Files that git tracks or would, and their folders; None where it cannot say, so that nothing counts as ignored."""
        listing = list_by_git(self.root)
        if listing is None:
            return None, frozenset()
        files = frozenset(path.rstrip("/") for path in listing)
        return files, frozenset(_folders(files)) | frozenset(_folders(self._entries))


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while (path := posixpath.dirname(path)) and path not in found:
            found.add(path)
    return found
