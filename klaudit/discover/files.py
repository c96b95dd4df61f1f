"""Which files below the targets a scan looks at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from klaudit.configuration import Options
from klaudit.discover.git import list_by_git
from klaudit.discover.suffixes import EXCLUDED_FOLDERS, SHEBANG_BYTES, has_shell_shebang, is_candidate
from klaudit.discover.targets import Targets, locate
from klaudit.discover.walk import list_by_walk
from klaudit.globs import any_of
from klaudit.model import Problem

_MOST_GIT_RUNS = 50  # a tree can hold any number of repositories, and each costs a process


class Found(Struct, frozen=True):
    """POSIX paths relative to the root of the targets, sorted; `problems` has a row for each folder that could not be read."""

    files: tuple[str, ...]
    problems: tuple[Problem, ...] = ()


def discover(root: str | Path, options: Options) -> list[str]:
    """The files below one folder that a scan looks at, as sorted POSIX paths relative to it."""
    return list(list_files(locate([str(root)], options), options).files)


def list_files(targets: Targets, options: Options) -> Found:
    """Candidates below the targets' folders, and every file that was named.

    With `force_exclude` a tool did the naming: what is excluded, and a text without a suffix that is no shell script, is left out.
    """
    is_excluded = any_of(options.exclude, targets.root)
    files: set[str] = set()
    problems: list[Problem] = []
    for folder in targets.folders:
        prefix = "" if folder == "." else folder + "/"
        full = targets.root if folder == "." else os.path.join(targets.root, folder)
        for path in _list(full, prefix, problems):
            if path not in files and not is_excluded(path) and _is_wanted(targets.root, path, options):
                files.add(path)
    for path in targets.files:
        is_left_out = is_excluded(path) or _in_excluded_folder(path) or _is_prose(targets, path)
        if not (options.force_exclude and is_left_out):
            files.add(path)
    return Found(tuple(sorted(files)), tuple(problems))


def _list(folder: str, prefix: str, problems: list[Problem]) -> Iterator[str]:
    """Paths below a folder that git does not ignore, nested repositories included; `prefix` stands before each."""
    pending = [(folder, prefix)]
    tries = _MOST_GIT_RUNS
    while pending:
        folder, prefix = pending.pop()
        listing = list_by_git(folder) if tries > 0 else None
        tries = tries - 1 if listing is not None else 0  # what made git fail here will do so again
        if listing is None:
            listing, unreadable = list_by_walk(folder, EXCLUDED_FOLDERS)
            problems.extend(Problem(prefix + path, None, message) for path, message in unreadable)
        for path in listing:
            if _in_excluded_folder(path):
                continue
            if path.endswith("/"):  # a repository in the repository: git names it and goes no further
                pending.append((os.path.join(folder, path.rstrip("/")), prefix + path))
            else:
                yield prefix + path


def _in_excluded_folder(path: str) -> bool:
    return not EXCLUDED_FOLDERS.isdisjoint(path.split("/")[:-1])


def _is_prose(targets: Targets, path: str) -> bool:
    """Whether a file on disk has no suffix and does not ask for a shell either: a LICENSE."""
    if path in targets.overlay or is_candidate(path) is not None:
        return False
    return not _is_wanted(targets.root, path, Options())


def _is_wanted(root: str, path: str, options: Options) -> bool:
    wanted = is_candidate(path, include_markdown=options.include_markdown)
    if wanted is False:
        return False
    full = os.path.join(root, path)  # a Path would cost more than the look at the file
    try:
        if not stat.S_ISREG(os.lstat(full).st_mode):  # gone, a symlink (its target is listed by its own name), a pipe
            return False
        if wanted is None:
            with open(full, "rb") as file:
                return has_shell_shebang(file.read(SHEBANG_BYTES))
    except OSError:
        return wanted is True and os.path.lexists(full)  # unreadable: the scan says so
    return True
