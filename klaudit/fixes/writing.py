"""Writing a plan: each file old or new at any moment, none that has changed since it was read, none outside the tree."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping

from klaudit.tree import is_private

_MODE_OF_NEW = 0o666


class WriteError(OSError):
    """A file that was not written, and why; nothing of it has changed on disk."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


def write_all(root: str, originals: Mapping[str, bytes | None], contents: Mapping[str, bytes]) -> list[str]:
    """Replaces files below `root`, and makes those whose original is None.  Returns their paths.

    All are checked and their new contents stored beside them before the first one is replaced.  Raises WriteError: before any file has
    changed where one cannot be written, and where replacing fails after the others that were replaced have been put back.
    """
    prepared: list[tuple[str, str, str]] = []
    try:
        for path in sorted(contents):
            full = _checked(root, path, originals[path])
            prepared.append((path, full, _store(path, full, contents[path])))
        for path, full, _ in prepared:  # storing took a while
            _unchanged(path, full, originals[path])
        _replace_all(prepared, originals)
    finally:
        for _, _, stored in prepared:
            with contextlib.suppress(OSError):
                os.unlink(stored)
    return [path for path, _, _ in prepared]


def _checked(root: str, path: str, original: bytes | None) -> str:
    """The file to replace: the target of a symlink inside the tree.  For a new one its folder is made.  Raises WriteError."""
    real_root = os.path.realpath(root)
    full = os.path.realpath(os.path.join(real_root, path))
    if not full.startswith(real_root.rstrip(os.sep) + os.sep):
        raise WriteError(path, "a symlink leads out of the tree")
    if is_private(os.path.relpath(full, real_root)):
        raise WriteError(path, "version control keeps it for itself")
    _unchanged(path, os.path.join(real_root, path) if original is None else full, original)
    if original is None:
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
        except OSError as error:
            raise WriteError(path, error.strerror or str(error)) from None
    return full


def _unchanged(path: str, full: str, original: bytes | None) -> None:
    if original is None:
        if os.path.lexists(full):
            raise WriteError(path, "is there already")
        return
    try:
        with open(full, "rb") as file:
            current = file.read()
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from None
    if current != original:
        raise WriteError(path, "changed on disk since it was read")


def _store(path: str, full: str, data: bytes) -> str:
    """The new contents in a file beside the old one, safely on disk, with its mode."""
    stored = ""
    try:
        mode = stat.S_IMODE(os.stat(full).st_mode) if os.path.exists(full) else _MODE_OF_NEW & ~_umask()
        handle, stored = tempfile.mkstemp(prefix=".klaudit-", dir=os.path.dirname(full))
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode) if hasattr(os, "fchmod") else os.chmod(stored, mode)
            os.fsync(file.fileno())
    except OSError as error:
        if stored:
            with contextlib.suppress(OSError):
                os.unlink(stored)
        raise WriteError(path, error.strerror or str(error)) from None
    return stored


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _replace_all(prepared: list[tuple[str, str, str]], originals: Mapping[str, bytes | None]) -> None:
    done: list[tuple[str, str]] = []
    for path, full, stored in prepared:
        try:
            os.replace(stored, full)
        except OSError as error:
            for other, place in done:
                original = originals[other]
                if original is None:
                    os.unlink(place)
                else:
                    os.replace(_store(other, place, original), place)
            raise WriteError(path, error.strerror or str(error)) from None
        done.append((path, full))
    for folder in {os.path.dirname(full) for _, full in done}:
        _sync(folder)


def _sync(folder: str) -> None:
    """The new names safely on disk too, where the system lets folders be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
