"""Which commands the scripts of a tree would start: bash itself expands them, each command is written down and none is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Commands = dict[str, list[list[str]]]  # script -> argument vectors, in the order in which they would start

_PATTERNS = ("*.sh", "*.slurm", "*.sbatch")
_HARMLESS = (
    "dirname", "basename", "date", "realpath", "tr", "sed", "cut", "head", "tail", "wc", "seq", "nproc", "uname", "grep",
    "readlink", "sort", "uniq", "expr", "cat",
)  # fmt: skip
_SECONDS = 6
# A command that is not found is recorded; the tree's programs, python among them, are not to be found.
_PRELUDE = r"""
command_not_found_handle() { printf '%s\x1f' "$@" > "$RECORDS/${EPOCHREALTIME//[.,]/}.$BASHPID.$RANDOM"; return 0; }
sleep() { :; }; wait() { :; }
date() { command date -d @0 "$@"; }
RANDOM=0
source() { if [ -f "$1" ]; then builtin source "$@"; fi; return 0; }
exec() { if [ $# -gt 0 ]; then "$@"; builtin exit 0; fi; }
set +e
"""


def record(tree: Path, jobs: int = 2) -> Commands:
    """Every script below `tree`, run by bash in a throw-away copy, as nobody where root runs this.

    The copy's path is written as /TREE and the home folder as /HOME.  A script is run from the tree's root and from its own folder,
    and the run that starts more counts.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy, bin = Path(scratch, "tree"), Path(scratch, "bin")
        shutil.copytree(tree, copy, symlinks=True)
        bin.mkdir()
        for name in _HARMLESS:
            if found := shutil.which(name):
                (bin / name).symlink_to(found)
        _open(Path(scratch))
        scripts = sorted({path for pattern in _PATTERNS for path in copy.rglob(pattern) if path.is_file()})
        with ThreadPoolExecutor(jobs) as pool:
            runs = pool.map(lambda script: _longest(script, copy, bin), scripts)
            return {script.relative_to(copy).as_posix(): run for script, run in zip(scripts, runs, strict=True)}


def _longest(script: Path, tree: Path, bin: Path) -> list[list[str]]:
    return max((_run(script, folder, tree, bin) for folder in (tree, script.parent)), key=len)


def _run(script: Path, folder: Path, tree: Path, bin: Path) -> list[list[str]]:
    text = script.read_text(errors="surrogateescape")
    for absolute in ("/usr/bin/env ", "/usr/bin/", "/bin/"):  # these would be found whatever PATH says
        text = text.replace(absolute, "")
    with tempfile.TemporaryDirectory() as home:
        records, prelude = Path(home, "records"), Path(home, "prelude")
        records.mkdir()
        prelude.write_text(_PRELUDE)
        _open(Path(home))
        body = script.with_name(f".recorded-{os.path.basename(home)}-{script.name}")
        body.write_text(text, errors="surrogateescape")
        as_nobody: dict[str, Any] = (
            {"user": 65534, "group": 65534, "extra_groups": []} if hasattr(os, "geteuid") and os.geteuid() == 0 else {}
        )
        environment = {
            "PATH": str(bin), "BASH_ENV": str(prelude), "RECORDS": str(records), "HOME": home, "USER": "user", "NNODES": "1",
        }  # fmt: skip
        try:
            subprocess.run(
                ["/bin/bash", body], cwd=folder, env=environment, timeout=_SECONDS, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **as_nobody,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            pass
        finally:
            body.unlink()
        told = [path.read_text(errors="replace").split("\x1f")[:-1] for path in sorted(records.iterdir())]
    return [
        [word.replace(str(tree), "/TREE").replace(home, "/HOME") for word in command] for command in told if command
    ]


def _open(folder: Path) -> None:
    """So that nobody may write there."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o666)
