"""The tree under scan, read-only: files by path relative to its root, each read once, never anything outside it."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from pathlib import Path

from klaudit.readers.source import Source, UnreadableError

MAX_BYTES = 20_000_000  # no config, script or module is larger; data files are, and would only cost time


# Folders of version control: no script trains with what lies there, and credentials do (`.git/config` of a checkout in a pipeline).
_PRIVATE = frozenset((".bzr", ".git", ".hg", ".jj", ".svn"))


class TooLargeError(ValueError):
    """A file over MAX_BYTES."""


class Tree:
    """Files below `root`.  Paths are POSIX and relative; `..` and symlinks that lead out of the root read as absent, as does what
    version control keeps for itself."""

    def __init__(self, root: str | Path, overlay: dict[str, bytes] | None = None) -> None:
        self.root = os.path.realpath(root)
        self._overlay = (
            overlay or {}
        )  # contents that stand in for what is on disk (standard input, a fix not yet written)
        self._sources: dict[str, Source | None] = {}
        self._real: dict[str, str | None] = {}
        self._listings: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def source(self, path: str) -> Source | None:
        """The file at `path`, None where there is none.  Raises TooLargeError, and OSError where it cannot be read."""
        path = posixpath.normpath(path)
        if path not in self._sources:
            data = self._read(path)
            self._sources[path] = None if data is None else Source(path, data)
        return self._sources[path]

    def readable(self, path: str) -> Source | None:
        """The file at `path`, None where there is none that can be read: why is told when the scan comes to the file itself."""
        try:
            return self.source(path)
        except (OSError, TooLargeError):
            return None

    def data(self, path: str) -> bytes | None:
        """The bytes of the file at `path`, None where there is none that can be read."""
        source = self.readable(path)
        return None if source is None else source.data

    def text(self, path: str) -> str | None:
        """The text of the file at `path`, None where there is none that can be read."""
        source = self.readable(path)
        try:
            return None if source is None else source.text
        except UnreadableError:
            return None

    def forget(self, path: str) -> None:
        """Let go of a file's bytes; it is read again when asked for."""
        self._sources.pop(posixpath.normpath(path), None)

    def size(self, path: str) -> int:
        """Bytes of the file at `path`; 0 where there is none."""
        path = posixpath.normpath(path)
        if path in self._overlay:
            return len(self._overlay[path])
        full = self._inside(path)
        try:
            return 0 if full is None else os.path.getsize(full)
        except OSError:
            return 0

    def is_file(self, path: str) -> bool:
        path = posixpath.normpath(path)
        if path in self._overlay:
            return True
        folder, name = posixpath.split(path)
        return name in self._list(folder)[0]

    def is_folder(self, path: str) -> bool:
        path = posixpath.normpath(path)
        if path == ".":
            return True
        folder, name = posixpath.split(path)
        return name in self._list(folder)[1]

    def files(self, folder: str) -> frozenset[str]:
        """Names of the files directly in a folder; empty where there is no such folder."""
        return self._list(posixpath.normpath(folder) if folder else ".")[0]

    def folders(self, folder: str) -> frozenset[str]:
        """Names of the folders directly in a folder."""
        return self._list(posixpath.normpath(folder) if folder else ".")[1]

    def _read(self, path: str) -> bytes | None:
        if path in self._overlay:
            return self._overlay[path]
        full = self._inside(path)
        if full is None or not os.path.isfile(full):  # a fifo or device would block or never end
            return None
        if os.path.getsize(full) > MAX_BYTES:
            raise TooLargeError(f"larger than {MAX_BYTES // 1_000_000} MB")
        with open(full, "rb") as file:
            return file.read()

    def _inside(self, path: str) -> str | None:
        if path.startswith(("/", "../")) or path == ".." or is_private(path):
            return None
        folder, name = posixpath.split(path)
        if folder not in self._real:  # one look a folder, not one a component of each file
            self._real[folder] = self._real_path(folder)
        real = self._real[folder]
        if real is None or name in ("", "."):
            return real
        full = os.path.join(real, name)
        return self._real_path(path) if os.path.islink(full) else full

    def _real_path(self, path: str) -> str | None:
        full = os.path.join(self.root, path)
        try:
            full = os.path.realpath(full, strict=True)
        except (FileNotFoundError, NotADirectoryError):
            return None  # a link through what is not there leads nowhere, whatever its words say
        except OSError:  # told when the file itself is read
            full = os.path.realpath(full)
        if full == self.root:
            return full
        start = self.root.rstrip("/") + "/"
        return full if full.startswith(start) and not is_private(full[len(start) :]) else None

    def _list(self, folder: str) -> tuple[frozenset[str], frozenset[str]]:
        folder = folder or "."
        if folder not in self._listings:
            files: set[str] = set()
            folders: set[str] = set()
            full = self._inside(folder)
            try:
                with os.scandir(full) if full else os.scandir(os.devnull) as entries:
                    for entry in entries:
                        path = posixpath.join(folder, entry.name)
                        if is_private(entry.name) or (entry.is_symlink() and self._inside(path) is None):
                            continue
                        with suppress(OSError):  # a link that leads round in a circle
                            (folders if entry.is_dir() else files if entry.is_file() else set()).add(entry.name)
            except OSError:
                pass  # absent or unreadable: nothing to find there
            self._listings[folder] = (frozenset(files), frozenset(folders))
        return self._listings[folder]


def is_private(path: str) -> bool:
    """Whether a relative path leads into a folder of version control, on file systems of either kind of case."""
    return "." in path and not _PRIVATE.isdisjoint(path.casefold().replace(os.sep, "/").split("/"))
