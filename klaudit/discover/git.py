"""The files of a folder as git sees them: tracked, and untracked but not ignored.

A repository's own configuration can name programs for git to start (core.fsmonitor, remote helpers, ...), and what is scanned is not
trusted.  So git never reads it: it is given an empty git folder of ours, and of the repository only the index.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from klaudit.discover.git_program import environment_of_git, git_program, is_regular, metadata_of
from klaudit.discover.targets import repository_of

TIMEOUT = 20.0  # seconds; a pipe named .gitignore would make git wait for ever


def list_by_git(folder: str) -> list[str] | None:
    """POSIX paths relative to the absolute `folder`, a path ending in `/` being a repository of its own; in no order, with repeats.

    Outside a repository every file counts as untracked.  None where git is missing, too slow, or has anything to complain of.
    """
    program = git_program()
    if program is None:
        return None
    repository = repository_of(folder) or folder
    try:
        with tempfile.TemporaryDirectory(prefix="klaudit-") as scratch:
            git = _Git(program, _empty_git_folder(Path(scratch)), repository)
            if repository != folder and git.ignores(folder):
                git = _Git(program, git.git_folder, folder)  # named all the same: what lies above has no say
            return git.list(folder)
    except (OSError, subprocess.SubprocessError):
        return None


class _Git(Struct, frozen=True):
    program: str
    git_folder: Path
    work_tree: str

    def list(self, folder: str) -> list[str] | None:
        arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        metadata = metadata_of(Path(self.work_tree))
        if metadata is not None and is_regular(metadata / "info" / "exclude"):
            arguments.append(f"--exclude-from={metadata / 'info' / 'exclude'}")
        index = metadata / "index" if metadata is not None else None
        done = self._run(arguments, folder, index if index is not None and is_regular(index) else None)
        if (
            done.returncode != 0 or done.stderr
        ):  # unreadable folders, an index it cannot read: the walk says what is wrong
            return None
        return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]

    def ignores(self, folder: str) -> bool:
        path = f"./{Path(folder).relative_to(self.work_tree).as_posix()}"  # a name may start with `:` or `-`
        done = self._run(["check-ignore", "--quiet", "--no-index", path], self.work_tree, None)
        if done.returncode not in (0, 1):
            raise subprocess.SubprocessError(done.stderr)
        return done.returncode == 0

    def _run(self, arguments: Sequence[str], folder: str, index: Path | None) -> subprocess.CompletedProcess[bytes]:
        environment = environment_of_git(self.git_folder)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        command = [self.program, f"--git-dir={self.git_folder}", f"--work-tree={self.work_tree}", *arguments]
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )


def _empty_git_folder(folder: Path) -> Path:
    (folder / "objects").mkdir()
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    return folder
