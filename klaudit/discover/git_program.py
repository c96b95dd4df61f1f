"""git, started so that nothing a repository says can start anything else, and the files in which a repository keeps itself."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

_GIT_FILE = b"gitdir: "


def git_program() -> str | None:
    """git, unless it lies in the working directory (which some systems search first): that may be what is scanned."""
    program = shutil.which("git")
    if program is None or Path(program).resolve().parent == Path.cwd().resolve():
        return None
    return program


def environment_of_git(git_folder: Path) -> dict[str, str]:
    """Without what is set for other runs of git, and without the configuration of system and user."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return environment | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(git_folder),  # git before 2.32 knows no GIT_CONFIG_GLOBAL
        "XDG_CONFIG_HOME": str(git_folder),
        "LC_ALL": "C",
    }


def metadata_of(repository: Path) -> Path | None:
    """The git folder of a work tree: `.git`, or what a file of that name points to."""
    git = repository / ".git"
    if git.is_dir():
        return git
    if not is_regular(git):
        return None
    with git.open("rb") as file:
        first = file.read(4096).split(b"\n")[0]
    return repository / os.fsdecode(first[len(_GIT_FILE) :]) if first.startswith(_GIT_FILE) else None


def is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
