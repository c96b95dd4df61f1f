"""The commits of a repository, read without running anything that the repository names.

As for the listing, git gets an empty git folder of ours with no configuration; of the repository it sees refs and objects, and is asked
only for plumbing that neither checks out nor compares files: no hook, filter, text conversion, monitor or remote can come into play.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from klaudit.discover.git_program import environment_of_git, git_program, is_regular, metadata_of
from klaudit.errors import KlauditError
from klaudit.tree import MAX_BYTES, TooLargeError

TIMEOUT = 60.0  # seconds for one question; the base of two long histories is the hardest
_SHARED = ("refs", "packed-refs", "objects", "shallow", "reftable")
_HEAD = re.compile(rb"(?:ref: refs/[^\0\n]+|[0-9a-f]{40}|[0-9a-f]{64})\n?")
_FORMAT = re.compile(r"(?im)^\s*(objectformat|refstorage)\s*=\s*(sha1|sha256|files|reftable)\s*$")
_MOST_OF_CONFIG = 100_000
_MOST_OUTPUT = 300_000_000  # bytes; three million files
FETCH = "fetch the whole history (`git fetch --unshallow`; actions/checkout: `fetch-depth: 0`; GitLab: `GIT_DEPTH: 0`)"


class RevisionError(KlauditError):
    """A commit that cannot be found or compared with."""


class Entry(Struct, frozen=True):
    """`kind` is one of file, link, repository."""

    kind: str
    id: str


class _Answer(Struct, frozen=True):
    returncode: int
    stdout: bytes
    stderr: bytes


_KINDS = {b"100644": "file", b"100755": "file", b"100664": "file", b"120000": "link", b"160000": "repository"}


class History:
    """The history of the repository whose work tree is `repository`; a context, at the end of which its processes are gone."""

    def __init__(self, repository: str) -> None:
        """Raises RevisionError where git is missing or the repository is none."""
        program = git_program()
        metadata = metadata_of(Path(repository))
        if program is None:
            raise RevisionError("git is not installed")
        self.repository = repository
        self._program = program
        self._scratch = tempfile.TemporaryDirectory(prefix="klaudit-")
        self._folder = Path(self._scratch.name)
        self._reader: subprocess.Popen[bytes] | None = None
        self._owner = 0
        try:
            self._common = _common(metadata) if metadata is not None else None
            if metadata is None or self._common is None:
                raise RevisionError(f"{repository} is not a git repository")
            self._link(metadata, self._common)
        except OSError as error:
            self.close()
            raise RevisionError(f"{repository}: {error.strerror or error}") from None
        except RevisionError:
            self.close()
            raise
        self.is_shallow = is_regular(self._common / "shallow")

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._reader is not None and self._owner == os.getpid():
            self._reader.kill()
            self._reader.communicate()
            self._reader = None
        self._scratch.cleanup()

    def commit(self, ref: str) -> str | None:
        """The id of the commit that a ref, tag or id names; None where there is none."""
        if not ref or ref.startswith("-") or "\0" in ref:
            return None
        done = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")
        return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else None

    def merge_base(self, one: str, other: str) -> str | None:
        """The commit that two ids branched off; None where they share none, or none that is here.  Raises RevisionError."""
        done = self._ask("merge-base", one, other)
        if done.returncode not in (0, 1):
            raise RevisionError(
                f"{self.repository}: part of the history is missing ({_last_line(done.stderr)}): {FETCH}"
            )
        return done.stdout.decode("ascii").strip() or None

    def entries(self, commit: str) -> dict[str, Entry]:
        """Files, links and nested repositories of a commit by POSIX path.  Raises RevisionError where its objects are missing."""
        done = self._ask("ls-tree", "-r", "-z", "--full-tree", commit)
        if done.returncode != 0:
            raise RevisionError(
                f"{self.repository}: files of {commit[:12]} are missing ({_last_line(done.stderr)}): {FETCH}"
            )
        found: dict[str, Entry] = {}
        for line in done.stdout.split(b"\0"):
            about, _, path = line.partition(b"\t")
            if len(words := about.split(b" ")) == 3 and (kind := _KINDS.get(words[0])):
                found[os.fsdecode(path)] = Entry(kind, words[2].decode("ascii"))
        return found

    def read(self, id: str) -> bytes:
        """The bytes of a file or link.  Raises TooLargeError, and OSError where they are missing."""
        reader = self._reading()
        if reader.stdin is None or reader.stdout is None:
            raise OSError("git ended")
        reader.stdin.write(id.encode("ascii") + b"\n")
        reader.stdin.flush()
        words = reader.stdout.readline().split()
        if len(words) != 3 or words[1] != b"blob":
            self._reader = None
            raise OSError(f"object {id[:12]} is missing")
        size = int(words[2])
        if size > MAX_BYTES:
            reader.kill()
            reader.wait()
            self._reader = None
            raise TooLargeError(f"larger than {MAX_BYTES // 1_000_000} MB")
        data = reader.stdout.read(size + 1)
        return data[:-1]

    # --- git --------------------------------------------------------------------------------------------------------------------------

    def _link(self, metadata: Path, common: Path) -> None:
        head = metadata / "HEAD"
        content = head.read_bytes()[:4096] if is_regular(head) else b""
        if not _HEAD.fullmatch(content):
            raise RevisionError(f"{self.repository}: its HEAD cannot be read")
        (self._folder / "HEAD").write_bytes(content)
        (self._folder / "config").write_text(_configuration(common), encoding="ascii")
        for name in _SHARED:
            target = Path(os.path.abspath(common / name))
            if not (is_regular(target) or target.is_dir()):  # a pipe would make git wait
                continue
            try:
                (self._folder / name).symlink_to(target)
            except (
                OSError,
                NotImplementedError,
            ):  # where links are a privilege; objects are found by their own variable
                if name != "objects":
                    (shutil.copytree if target.is_dir() else shutil.copyfile)(target, self._folder / name)
        (self._folder / "refs").mkdir(exist_ok=True)

    def _command(self, *arguments: str) -> list[str]:
        return [self._program, f"--git-dir={self._folder}", *arguments]

    def _environment(self) -> dict[str, str]:
        objects = os.path.abspath(self._common / "objects") if self._common is not None else ""
        return environment_of_git(self._folder) | {"GIT_OBJECT_DIRECTORY": objects, "GIT_NO_LAZY_FETCH": "1"}

    def _ask(self, *arguments: str) -> _Answer:
        """Raises RevisionError where git takes too long, or says too much: a few objects can spell out any number of files."""
        with tempfile.TemporaryFile(dir=self._folder) as complaints:
            try:
                process = subprocess.Popen(
                    self._command(*arguments),
                    cwd=self._folder,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                )
            except (OSError, ValueError) as error:
                raise RevisionError(f"git cannot be started: {error}") from None
            overdue = threading.Timer(TIMEOUT, process.kill)
            overdue.start()
            with process:
                try:
                    output = process.stdout.read(_MOST_OUTPUT + 1) if process.stdout is not None else b""
                    if len(output) > _MOST_OUTPUT:
                        raise RevisionError(f"{self.repository}: more files than klaudit can compare with")
                    status = process.wait()
                    is_late = not overdue.is_alive()
                finally:
                    process.kill()
                    overdue.cancel()
            if is_late:
                raise RevisionError(f"{self.repository}: `git {arguments[0]}` took longer than {TIMEOUT:g} s")
            complaints.seek(0)
            return _Answer(status, output, complaints.read(_MOST_OF_CONFIG))

    def _reading(self) -> subprocess.Popen[bytes]:
        """One process that hands out objects; a forked worker must not share that of its parent."""
        if self._reader is None or self._owner != os.getpid():
            self._reader = subprocess.Popen(
                self._command("cat-file", "--batch"),
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._owner = os.getpid()
        return self._reader


def _common(metadata: Path) -> Path | None:
    """The folder with refs and objects: that of a linked work tree is elsewhere."""
    pointer = metadata / "commondir"
    common = metadata
    if is_regular(pointer):
        with pointer.open("rb") as file:
            common = metadata / os.fsdecode(file.read(4096).split(b"\n")[0])
    return common if (common / "objects").is_dir() else None


def _configuration(common: Path) -> str:
    """What git must know to read the objects at all, from the one file that is never given to it."""
    lines = ["[core]", "repositoryformatversion = 1", "[extensions]"]
    if is_regular(common / "config"):
        with (common / "config").open("rb") as file:
            text = file.read(_MOST_OF_CONFIG).decode("utf-8", "replace")
        lines += [f"{name} = {value}" for name, value in dict(_FORMAT.findall(text)).items()]
    return "\n".join(lines) + "\n"


def _last_line(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]


def ids_of(data: bytes) -> Sequence[str]:
    """The ids that a file of these bytes can have."""
    import hashlib

    whole = b"blob %d\0" % len(data) + data
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest(), hashlib.sha256(whole).hexdigest()
