"""Where reports go: standard output as it is (terminal or pipe, whatever its encoding), and files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import click
from msgspec import Struct
from msgspec.structs import replace

from klaudit.cli.ci import blob_address, is_step_summary, repository_prefix, room_in_summary
from klaudit.cli.parameters import Failure, Given
from klaudit.corrections import did_you_mean
from klaudit.discover import Targets
from klaudit.model import Report
from klaudit.reports import FORMATS, View, load
from klaudit.reports.view import DEFAULT_WIDTH, MIN_WIDTH
from klaudit.tree import Tree, is_private

_MAX_WIDTH = 140  # longer lines of prose are hard to read
_TEXT = "text"
_SUFFIXES = {
    ".sarif.json": "sarif",
    ".sarif": "sarif",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".xml": "junit",
}


class Plan(Struct, frozen=True):
    """Which formats go to which files, and which goes to standard output, if any."""

    files: tuple[tuple[str, str], ...]
    stdout: str | None

    @classmethod
    def of(cls, format_name: str | None, outputs: Sequence[str]) -> Plan:
        """`FILE` takes the report away from standard output, `FORMAT=FILE` is one more.  Raises Failure where that cannot work.

        Where no format was given the name of a `FILE` says it, and text is the format of all else.
        """
        files: list[tuple[str, str]] = []
        stdout: str | None = format_name or _TEXT
        for output in outputs:
            name, sign, file = output.partition("=")
            if not sign:
                name, file, stdout = format_name or _format_of(output), output, None
            elif name not in FORMATS:
                hint = did_you_mean(name, FORMATS)
                raise Failure(f"--output: unknown format `{name}`{hint}; write `./{output}` for a file of that name")
            if not file or Path(file).is_dir() or not Path(file).absolute().parent.is_dir():
                raise Failure(f"--output: cannot write to `{file}`: no such folder, or no file name")
            if leads_out(file):
                raise Failure(f"--output: cannot write to `{file}`: a symbolic link leads out of the working directory")
            files.append((name, file))
        return cls(tuple(files), stdout)

    def write(self, report: Report, view: View) -> None:
        """Raises Failure where a file cannot be written.  To the summary of a step on GitHub is added: others write there too."""
        for name, file in self.files:
            plain = replace(view, width=DEFAULT_WIDTH, wrap=False, colour=False, quiet=False)
            mode = "w"
            if is_step_summary(file):
                plain, mode = replace(plain, room=room_in_summary(file)), "a"
            try:
                with Path(file).open(mode, encoding="utf-8", newline="\n") as stream:
                    if stream.seekable() and stream.tell():
                        stream.write("\n\n")  # what stands there may not have ended its line or paragraph
                    stream.writelines(load(name).render(report, plain))
            except OSError as error:
                raise Failure(f"cannot write to `{file}`: {error.strerror or error}") from None
        if self.stdout is not None:
            write(load(self.stdout).render(report, view))


def _format_of(file: str) -> str:
    """The format that a file of this name is expected to hold."""
    return next((name for suffix, name in _SUFFIXES.items() if file.lower().endswith(suffix)), _TEXT)


def view_of(targets: Targets, given: Given) -> View:
    """How standard output is best written to."""
    is_terminal = sys.stdout.isatty()
    tree = Tree(targets.root, dict(targets.overlay))

    return View(
        source=tree.readable,
        prefix=prefix_of(targets.root),
        inside=inside_of(targets.root),
        width=width_of_stdout(),
        wrap=is_terminal,
        colour=wants_colour(given.color, is_terminal=is_terminal),
        quiet=given.quiet,
        verbose=given.verbose,
        repository_prefix=repository_prefix(targets.root),
        blob=blob_address(targets.root),
    )


def width_of_stdout() -> int:
    """Of the terminal, or what COLUMNS says, within what is readable."""
    return min(max(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, MIN_WIDTH), _MAX_WIDTH)


def wants_colour(when: str, *, is_terminal: bool) -> bool:
    """The option first, then NO_COLOR and FORCE_COLOR (no-color.org, force-color.org), then what standard output is."""
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb" and not _is_old_windows()


def write(pieces: Iterable[str]) -> None:
    """To standard output; characters that its encoding lacks as escapes.  A reader that has gone is not missed."""
    stream = sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.writelines(pieces)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(report: Report, view: View) -> None:
    """The rows of errors on standard error, for where standard output holds something else."""
    from klaudit.reports.layout import paint
    from klaudit.reports.text import problems

    for line in paint(problems(report.errors, view), colour=False):
        if line.strip():
            click.echo(line, nl=False, err=True)


def remark(report: Report) -> None:
    """What the report remarks on, on standard error, for formats that have no place for it."""
    from klaudit.reports.wording import prose

    for each in report.remarks:
        click.echo(f"note: {prose(each)}", err=True)


def leads_out(file: str) -> bool:
    """Whether a link below the working directory leads out of it, or to where version control keeps what is its own: what is scanned
    must not choose what is written."""
    start = os.path.realpath(".").rstrip(os.sep) + os.sep
    full = os.path.join(start, os.path.normpath(file))
    real = os.path.realpath(full)
    return full.startswith(start) and not (real.startswith(start) and not is_private(real[len(start) :]))


def prefix_of(root: str) -> str:
    here = os.path.realpath(".")
    if root == here:
        return ""
    try:
        shown = min(root, os.path.relpath(root, here), key=len)
    except ValueError:  # another drive
        shown = root
    return PurePath(shown).as_posix().rstrip("/") + "/"


def inside_of(root: str) -> str:
    """What leads from the root to the working directory; empty where that is the root, or does not lie below it."""
    here = os.path.realpath(".")
    return PurePath(os.path.relpath(here, root)).as_posix() if here.startswith(root.rstrip(os.sep) + os.sep) else ""


def _is_old_windows() -> bool:
    """A console that does not understand terminal colours."""
    if os.name != "nt":
        return False
    from rich.console import Console

    return Console().legacy_windows
