"""The files of a folder by walking it, .gitignore files honoured: for where git is missing or cannot be used.

In one respect more is seen than with git: `!folder` readmits all that lies in the folder, also what an earlier pattern names.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from klaudit.discover.targets import repository_of
from klaudit.globs import compile_globs

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_DEPTH = 100
_MAX_IGNORE_BYTES = 100_000
_MOST_PATTERNS = 2_000


class _Rules:
    """The ignore patterns in force in a folder: those of its own file, then those of the folders above, the nearest deciding."""

    def __init__(self, spec: GitIgnoreSpec | None, above: _Rules | None, prefix: str) -> None:
        """`prefix` leads from the folder of the rules above to this one."""
        self._spec = spec
        self._above = above
        self._prefix = prefix

    def ignores(self, path: str) -> bool:
        """Whether an entry, a path relative to this folder with `/` after a folder's name, is ignored."""
        rules: _Rules | None = self
        while rules is not None:
            if rules._spec is not None and (decided := rules._spec.check_file(path).include) is not None:
                return decided
            path = rules._prefix + path
            rules = rules._above
        return False


def list_by_walk(folder: str, excluded: frozenset[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """POSIX paths relative to `folder` of what is not ignored, and `(path, message)` for folders that cannot be read.

    Folders with an `excluded` name and symlinks are left out.  A named folder is walked even where the rules above ignore it.
    """
    files: list[str] = []
    unreadable: list[tuple[str, str]] = []
    pending: list[tuple[str, _Rules | None, int]] = [("", _rules_above(folder), 0)]
    while pending:
        prefix, above, depth = pending.pop()
        step = f"{Path(folder, prefix).name}/"
        try:
            with os.scandir(Path(folder, prefix)) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            unreadable.append((prefix.rstrip("/") or ".", error.strerror or str(error)))
            continue
        if any(entry.name == ".git" for entry in entries):  # a repository of its own: what lies above it has no say
            above, step = _rules_of_repository(Path(folder, prefix)), ""
        rules = _Rules(_spec(Path(folder, prefix, ".gitignore")), above, step)
        for entry in entries:
            if entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                path = f"{prefix}{entry.name}/"
                if entry.name in excluded or rules.ignores(f"{entry.name}/"):
                    continue
                if depth < _MAX_DEPTH:
                    pending.append((path, rules, depth + 1))
                else:
                    unreadable.append((path.rstrip("/"), f"more than {_MAX_DEPTH} folders deep"))
            elif not rules.ignores(entry.name):
                files.append(prefix + entry.name)
    return files, unreadable


def _rules_above(folder: str) -> _Rules | None:
    """The rules that the folders above hand down, up to the root of the repository; none where they ignore the folder itself."""
    repository = repository_of(folder)
    if repository is None or repository == folder:
        return None
    rules = _rules_of_repository(Path(repository))
    here, prefix = Path(repository), ""
    for name in Path(folder).relative_to(repository).parts:
        rules = _Rules(_spec(here / ".gitignore"), rules, prefix)
        if rules.ignores(f"{name}/"):
            return None
        here, prefix = here / name, f"{name}/"
    return rules


def _rules_of_repository(repository: Path) -> _Rules | None:
    spec = _spec(repository / ".git" / "info" / "exclude")
    return None if spec is None else _Rules(spec, None, "")


def _spec(file: Path) -> GitIgnoreSpec | None:
    """The patterns of an ignore file; None where there is none.  As for git, a symlink does not count."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return None
        with file.open("rb") as stream:
            text = stream.read(_MAX_IGNORE_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return compile_globs(text.replace("\r\n", "\n").split("\n")[:_MOST_PATTERNS])
