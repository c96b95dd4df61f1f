"""What the reader makes of a script, and what bash itself would have started."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from klaudit.readers.document import Command, ShellDocument
from klaudit.readers.shell import read_shell
from klaudit.readers.source import Source

BASH = shutil.which("bash")

# Every program is unknown to bash here (PATH is empty), so each command lands in the handler, which writes its words down.
_HANDLER = r"""
command_not_found_handle() { { printf '%s\x1f' "$@"; printf '\x1e'; } >> "$RECORD"; return 0; }
"""


def read(script: str, files: dict[str, str] | None = None, **options: object) -> ShellDocument:
    """The document of a script in a tree with these other files."""
    sources = {path: Source(path, text.encode()) for path, text in (files or {}).items()}
    load: Callable[[str], Source | None] = sources.get
    return read_shell(Source("script.sh", script.encode()), load=load, **options)  # type: ignore[arg-type]


def words(command: Command) -> list[str]:
    return [word.shown for word in command.words]


def plain_run(script: str, files: dict[str, str] | None = None, **options: object) -> list[list[str]]:
    """The commands that assume nothing."""
    return [words(command) for command in read(script, files, **options).commands if not command.assumes]


def other_ways(
    script: str, files: dict[str, str] | None = None, **options: object
) -> list[tuple[tuple[str, ...], list[str]]]:
    """The commands that assume something, with what they assume."""
    return [(command.assumes, words(command)) for command in read(script, files, **options).commands if command.assumes]


_SCRATCH = tempfile.TemporaryDirectory(prefix="klaudit-bash-")


@cache
def _folder() -> Path:
    folder = Path(_SCRATCH.name)
    (folder / "handler").write_text(_HANDLER)
    (folder / "empty").mkdir()
    return folder


def run_by_bash(script: str) -> tuple[list[list[str]], str]:
    """The words of every command that bash starts, in an empty folder and environment, and what it complains about."""
    assert BASH is not None
    folder = _folder()
    (folder / "script.sh").write_bytes(script.encode())
    record = folder / "record"
    record.write_bytes(b"")
    done = subprocess.run(
        [BASH, "../script.sh"],
        cwd=folder / "empty",
        env={
            "PATH": "/nonexistent",
            "BASH_ENV": str(folder / "handler"),
            "RECORD": str(record),
            "LC_ALL": "C",
            "HOME": "/home/user",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=20,
        check=False,
    )
    started = record.read_bytes().decode().split("\x1e")[:-1]
    return [command.split("\x1f")[:-1] for command in started], done.stderr.decode(errors="replace")
