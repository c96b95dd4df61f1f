"""`klaudit baseline`: the file of known findings, written, brought up to date, thinned out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click
from msgspec import Struct

from klaudit.cli.output import complain, leads_out, view_of
from klaudit.cli.parameters import Failure, Given, scans
from klaudit.cli.session import Session
from klaudit.discover import list_files
from klaudit.discover.targets import repository_of
from klaudit.gate.baseline_file import FILE_NAME, Row, read, write
from klaudit.gate.comparison import Comparison, compare
from klaudit.gate.step import Gate
from klaudit.model import Report
from klaudit.reports.wording import counted
from klaudit.tree import Tree

_FILE = click.option(
    "--baseline",
    "file",
    type=click.Path(),
    metavar="FILE",
    help=f"The file; by default the configuration's, or else {FILE_NAME} at the root of the repository.",
)
_CHECK = click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if the file would change.")


@click.group()
def command() -> None:
    """Keep a file of known findings, which `klaudit scan` then leaves out: what counts is what is new.

    A finding stays known when lines move, the text is laid out anew or the file is renamed; one more of its kind in the same file is new.
    """


@command.command("write", short_help="List every finding of today.")
@scans
@_FILE
@click.option("--force", is_flag=True, help="Overwrite the file if there is one.")
@click.pass_context
def write_command(ctx: click.Context, given: Given, file: str | None, force: bool) -> None:
    """List every finding below PATHs (by default the working directory) in a new file."""
    run = _Run.start(given, file)
    if os.path.lexists(run.file) and not force:
        raise Failure(f"{run.file} exists: `klaudit baseline update` brings it up to date, --force writes it anew")
    report = run.scan()
    run.write(run.compare(report, ()).rows(with_fresh=True))
    run.tell(f"{counted(len(report.findings), 'finding')} listed in {run.file}")
    if run.session.configuration.options.baseline is None:
        run.tell(
            f'`klaudit scan --baseline FILE` leaves them out, as does `baseline = "{FILE_NAME}"` in the configuration'
        )
    ctx.exit(run.status(report))


@command.command("update", short_help="Add new findings, take out those that are gone.")
@scans
@_FILE
@_CHECK
@click.pass_context
def update_command(ctx: click.Context, given: Given, file: str | None, check: bool) -> None:
    """Bring the file up to date: add what is new below PATHs, take out what is gone.  Rows of other files stay."""
    _renew(ctx, given, file, is_check=check, with_fresh=True)


@command.command("prune", short_help="Take out findings that are gone, and add none.")
@scans
@_FILE
@_CHECK
@click.pass_context
def prune_command(ctx: click.Context, given: Given, file: str | None, check: bool) -> None:
    """Take out of the file what is gone below PATHs, and add nothing.  Rows of other files stay."""
    _renew(ctx, given, file, is_check=check, with_fresh=False)


def _renew(ctx: click.Context, given: Given, file: str | None, *, is_check: bool, with_fresh: bool) -> None:
    run = _Run.start(given, file)
    known = read(run.file)
    report = run.scan()
    found = run.compare(report, known)
    rows = found.rows(with_fresh=with_fresh)
    added = len(found.fresh) if with_fresh else 0
    gone = sum(row.count for row in found.stale)
    is_same = _counts(known) == _counts(rows)
    if not is_check and not is_same:
        run.write(rows)
    would = "would be " if is_check else ""
    run.tell(
        f"{run.file}: {added} {would}added, {gone} {would}taken out, {counted(sum(_counts(rows).values()), 'finding')} listed"
    )
    ctx.exit(run.status(report) or int(is_check and not is_same))


def _counts(rows: Iterable[Row]) -> Counter[tuple[str, str, str]]:
    """Messages are for people: a file that only has other ones need not change."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        counts[row.path, row.rule, row.fingerprint] += row.count
    return counts


class _Run(Struct, frozen=True):
    session: Session
    file: str

    @classmethod
    def start(cls, given: Given, file: str | None) -> _Run:
        if "-" in given.paths:
            raise Failure("a baseline lists findings of files, not of standard input")
        session = Session.start(given)
        configured = session.configuration.options.baseline
        root = session.targets.root
        return cls(session, file or configured or os.path.relpath(Path(repository_of(root) or root, FILE_NAME)))

    def scan(self) -> Report:
        """The report as it would be without a baseline."""
        return self.session.scan(baseline=None, diff_base=None)

    def compare(self, report: Report, rows: Iterable[Row]) -> Comparison:
        targets, options = self.session.targets, self.session.configuration.options
        gate = Gate(Tree(targets.root), targets, list_files(targets, options).files, options)
        return compare(report, gate, rows, self.file)

    def write(self, rows: Iterable[Row]) -> None:
        if leads_out(self.file):
            raise Failure(f"cannot write to `{self.file}`: a symbolic link leads out of the working directory")
        write(self.file, rows)

    def tell(self, text: str) -> None:
        if not self.session.given.quiet:
            click.echo(text, err=True)

    def status(self, report: Report) -> int:
        """What could not be read cannot be listed, and is told."""
        complain(report, view_of(self.session.targets, self.session.given))
        return 2 if report.errors else 0
