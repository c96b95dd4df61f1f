"""What the user pointed at: one root, and the folders and files below it that were named."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from msgspec import Struct, field

from klaudit.configuration import Options, StandardInput
from klaudit.model import Problem


class Targets(Struct, frozen=True):
    """`root` is absolute, without symlinks; `folders` and `files` are POSIX, relative to it.

    `overlay` holds contents that stand in for what is on disk; `problems` has a row for each path that cannot be scanned.
    """

    root: str
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    overlay: Mapping[str, bytes] = field(default_factory=dict)


_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "klaudit.toml")


def locate(paths: Sequence[str], options: Options) -> Targets:
    """Sorts out named paths; `-` is standard input.

    The root is the folder that was named.  A file alone is seen as part of its repository, of the working directory, or else of its
    project or package, so that what it refers to is found and it has the same path as in a scan of the whole.  Of several paths the
    root is their common folder.
    """
    folders: list[str] = []
    files: list[str] = []
    refused: dict[str, str] = {}
    overlay: dict[str, bytes] = {}
    for path in paths:
        if path == "-" and options.stdin is not None:
            full = _real(options.stdin)
            overlay[full] = options.stdin.data
            files.append(full)
        elif problem := _refusal(path):
            refused[path] = problem
        else:
            full = os.path.realpath(path)
            (folders if Path(full).is_dir() else files).append(full)
    root = _common([*folders, *map(_home, files)])
    return Targets(
        root,
        _below(root, folders),
        _below(root, files),
        tuple(Problem(_as_seen(root, path), None, why) for path, why in refused.items()),
        {_relative(root, full): data for full, data in overlay.items()},
    )


def repository_of(folder: str) -> str | None:
    """The nearest folder, `folder` itself or above, that holds a git repository."""
    for candidate in (Path(folder), *Path(folder).parents):
        if (candidate / ".git").exists():
            return str(candidate)
    return None


def path_in_repository(folder: str) -> str:
    """What leads from the root of its repository to a folder, with a `/` at its end; empty for the root, and outside repositories."""
    repository = repository_of(folder)
    inside = "." if repository is None else _relative(repository, folder)
    return "" if inside == "." else inside + "/"


def _as_seen(root: str, path: str) -> str:
    """A path that cannot be scanned, as a report names it: from the root, as it was given where that is the same, else in full."""
    if not path or "\0" in path:
        return path or '""'
    here, full = os.path.realpath("."), os.path.realpath(path)
    if root == here:
        return PurePath(path).as_posix()
    return _relative(root, full) if _is_within(full, root) else PurePath(full).as_posix()


def _real(stdin: StandardInput) -> str:
    return os.path.realpath(stdin.name)


def _refusal(path: str) -> str | None:
    if not path:  # an unset variable, most likely: it must not mean the working directory
        return "an empty path"
    try:
        if not Path(path).exists():
            return "no such file or folder"
        if not Path(path).is_file() and not Path(path).is_dir():  # a pipe or device would block or never end
            return "neither a file nor a folder"
    except (OSError, ValueError) as error:  # ValueError: a null byte
        return getattr(error, "strerror", None) or str(error)
    return None


def _home(file: str) -> str:
    folder = str(Path(file).parent)
    if repository := repository_of(folder):
        return repository
    here = os.path.realpath(".")
    return here if _is_within(folder, here) and not _is_everything(here) else _project_of(folder)


def is_project(root: str) -> bool:
    """A folder that holds a repository or a Python project, with all that its files may refer to."""
    if os.path.lexists(os.path.join(root, ".git")):
        return True
    return not _is_everything(root) and any(os.path.isfile(os.path.join(root, name)) for name in _PROJECT_FILES)


def _is_everything(folder: str) -> bool:
    """A disk or a home, which is nobody's project."""
    return folder in (os.path.realpath("/"), os.path.realpath(Path.home()))


def _project_of(folder: str) -> str:
    """The nearest folder, `folder` itself or above, that holds a Python project, or else the outermost package that `folder` is in."""
    for candidate in (Path(folder), *Path(folder).parents):
        if is_project(str(candidate)):
            return str(candidate)
    package = Path(folder)
    while (package / "__init__.py").is_file() and package.parent != package:
        package = package.parent
    return str(package)


def _common(folders: Sequence[str]) -> str:
    if not folders:
        return os.path.realpath(".")
    try:
        return os.path.commonpath(folders)
    except ValueError:  # drives of their own
        return folders[0]


def _below(root: str, paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({_relative(root, path) for path in paths if _is_within(path, root)}))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _relative(root: str, path: str) -> str:
    return PurePath(path).relative_to(root).as_posix()
