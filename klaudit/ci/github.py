"""One step on GitHub's runner: scan, annotate, summarise, and say where the reports are.

What was asked for comes in environment variables, never as text of a script, so that no input can become a command:

    KLAUDIT_PATH, KLAUDIT_ARGS   one path or option a line
    KLAUDIT_FAIL_ON, KLAUDIT_BASELINE, KLAUDIT_TIMEOUT
    KLAUDIT_DIFF_BASE            `auto` (the base of a pull request), `none`, or a commit
    KLAUDIT_EVENT_BASE           the commit that the event names as its base, if any
    KLAUDIT_SARIF_FILE, KLAUDIT_REPORT_FILE   by default in the runner's temporary folder
    KLAUDIT_SUMMARY              `true` to write the job summary

Step outputs: `sarif`, `report` (Markdown), `findings` (how many count), `exit-status`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from klaudit.discover.git_program import git_program

_FETCH_SECONDS = 300
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ANNOTATIONS = ("::error ", "::warning ", "::notice ")  # the format's plain lines are in the log already


class Files(Struct, frozen=True):
    """Where the reports of one run go."""

    sarif: Path
    report: Path
    annotations: Path
    json: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Files:
        """Defaults lie outside the checkout, where no symlink of the repository can be in the way."""
        folder = Path(environment.get("RUNNER_TEMP") or ".")
        return cls(
            Path(environment.get("KLAUDIT_SARIF_FILE") or folder / "klaudit.sarif"),
            Path(environment.get("KLAUDIT_REPORT_FILE") or folder / "klaudit.md"),
            folder / "klaudit-annotations.txt",
            folder / "klaudit.json",
        )

    def clear(self) -> None:
        """What an earlier step left in the runner's folder must not be taken for the outcome of this one."""
        for file in (self.annotations, self.json):
            file.unlink(missing_ok=True)


def main(environment: Mapping[str, str]) -> int:
    """Runs the step.  Returns the exit status of the scan."""
    files = Files.of(environment)
    files.clear()
    try:
        base = diff_base(environment)
    except LookupError as error:
        _tell(f"::error title=klaudit::{_value(str(error))}\n")
        status = 2
    else:
        status = _muted([sys.executable, "-I", "-m", "klaudit", *arguments(environment, files, base)])
        for line in _lines(files.annotations):
            if line.startswith(_ANNOTATIONS):
                _tell(line)
    _output(environment, files, status)
    return status


def arguments(environment: Mapping[str, str], files: Files, base: str | None) -> list[str]:
    """The command line of `klaudit`."""
    given = ["scan", *_entries(environment.get("KLAUDIT_ARGS"))]
    for format_name, file in (
        ("sarif", files.sarif),
        ("markdown", files.report),
        ("github", files.annotations),
        ("json", files.json),
    ):
        given.append(f"--output={format_name}={file}")
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if summary and environment.get("KLAUDIT_SUMMARY") == "true":
        given.append(f"--output=markdown={summary}")
    for option in ("fail-on", "baseline", "timeout"):
        if value := environment.get("KLAUDIT_" + option.upper().replace("-", "_")):
            given.append(f"--{option}={value}")
    if base is not None:
        given.append(f"--diff-base={base}")
    return [*given, "--", *(_entries(environment.get("KLAUDIT_PATH")) or ["."])]


def diff_base(environment: Mapping[str, str]) -> str | None:
    """The commit that findings must be newer than.  Raises LookupError where the event has one that cannot be had."""
    asked = environment.get("KLAUDIT_DIFF_BASE") or "auto"
    if asked == "none":
        return None
    if asked != "auto":
        return asked
    base = environment.get("KLAUDIT_EVENT_BASE")
    if not base:
        return None
    is_commit = _COMMIT.fullmatch(base) is not None  # and no option of git
    if is_commit and not _is_connected(base):
        _fetch(base)
    if not is_commit or not _is_connected(base):
        raise LookupError(
            f"the base of this pull request ({base}) is not there: check out with `fetch-depth: 0`, or set diff-base to none"
        )
    return base


def _is_connected(base: str) -> bool:
    """Whether the checkout reaches back to where it branched off."""
    return _git("merge-base", base, "HEAD") is not None


def _fetch(base: str) -> None:
    """Deepens a shallow checkout as far as is needed, in the end to all of its history."""
    ends = [base, *_entries(_git("rev-parse", "HEAD"))]  # history is deepened below what is asked for
    for depth in ("--deepen=50", "--deepen=1000", "--unshallow"):
        _git("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", depth, "origin", *ends)
        if _is_connected(base):
            return


def _git(*arguments: str) -> str | None:
    """What git prints; None where it fails."""
    program = git_program()
    if program is None:
        return None
    # In a container the checkout belongs to another user, and git would refuse to look at it.
    command = [program, "-c", f"safe.directory={os.path.realpath('.')}", *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def _muted(command: Sequence[str]) -> int:
    """Runs a command whose output the runner must not obey: it quotes the repository, and a line `::error ...` in it is only text."""
    token = secrets.token_hex(16)
    _tell(f"::stop-commands::{token}\n")
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False).returncode
    finally:
        _tell(f"\n::{token}::\n")


def _output(environment: Mapping[str, str], files: Files, status: int) -> None:
    file = environment.get("GITHUB_OUTPUT")
    if not file:
        return
    values = {"exit-status": str(status), "findings": _count(files.json)}
    if values["findings"]:  # the last file to be written is there, so the others are those of this scan
        values |= {"sarif": str(files.sarif), "report": str(files.report)}
    with open(file, "a", encoding="utf-8") as stream:
        for name, value in values.items():
            end = secrets.token_hex(16)  # a name with a line break cannot add an output of its own
            stream.write(f"{name}<<{end}\n{value}\n{end}\n")


def _count(file: Path) -> str:
    """How many findings count; empty where the scan came to no report."""
    try:
        return str(json.loads(file.read_bytes())["summary"]["findings"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _lines(file: Path) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8", newline="\n") as stream:
            yield from stream
    except OSError:
        return


def _entries(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def _value(text: str) -> str:
    """Escaped as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _tell(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(os.environ))
