"""`klaudit init`: klaudit set up in a repository, as a patch or in place."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from klaudit.cli.output import wants_colour, write
from klaudit.cli.parameters import Failure
from klaudit.cli.progress import shown_progress
from klaudit.reports.layout import paint
from klaudit.reports.migrations import diff_style
from klaudit.reports.visible import visible
from klaudit.reports.wording import counted

if TYPE_CHECKING:
    from klaudit.init.proposal import Change


@click.command(
    epilog="Exit status: 0 nothing to do or all written, 1 changes shown but not written, 2 wrong usage, a file that could not be "
    "written or a fault of klaudit."
)
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--write", "is_write", is_flag=True, help="Write the files; without it only the patch is shown.")
@click.option(
    "--github/--no-github", default=None, help="A workflow; by default where a remote or .github says GitHub."
)
@click.option(
    "--gitlab/--no-gitlab", default=None, help="A job; by default where a remote or .gitlab-ci.yml says GitLab."
)
@click.option(
    "--pre-commit/--no-pre-commit", default=None, help="The hook; by default where .pre-commit-config.yaml is there."
)
@click.option("--baseline", is_flag=True, help="List the findings of today in a file, so that only new ones count.")
@click.option(
    "--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes to use; by default as many as there are cores."
)
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    is_write: bool,
    github: bool | None,
    gitlab: bool | None,
    pre_commit: bool | None,
    baseline: bool,
    jobs: int | None,
) -> None:
    """Set klaudit up in the repository of PATH (by default the working directory): configuration, hook, pipeline, baseline.

    Looks what is there and proposes what fits, as a patch.  What belongs to others is only added to, never overwritten.
    """
    from klaudit import engine
    from klaudit.discover.targets import repository_of
    from klaudit.effective import effective
    from klaudit.init.planning import Wishes, propose

    here = os.path.realpath(path)
    root = repository_of(here) or here
    with shown_progress() as progress:
        report = engine.scan([root], effective(root, jobs=jobs).options, progress)
    proposal = propose(root, report, Wishes(github, gitlab, pre_commit, baseline))
    if proposal.changes:
        _show(root, proposal.changes, is_write=is_write)
    for note in proposal.notes:
        click.echo(f"- {visible(note)}", err=True)
    files = counted(len(proposal.changes), "file")
    if not proposal.changes:
        click.echo("Nothing to do.", err=True)
    elif is_write:
        click.echo(f"{files} written.", err=True)
    else:
        click.echo(f"{files}, not written: --write does that.", err=True)
    ctx.exit(int(bool(proposal.changes) and not is_write))


def _show(root: str, changes: Sequence[Change], *, is_write: bool) -> None:
    """The patch on standard output, as `git apply` takes it; with `is_write` it is made first.  Raises Failure where it cannot be."""
    from klaudit.fixes.diff import unified
    from klaudit.fixes.writing import WriteError, write_all

    if is_write:
        before = {change.path: change.before for change in changes}
        try:
            write_all(root, before, {change.path: change.after for change in changes})
        except WriteError as error:
            raise Failure(f"nothing written: {error.path}: {error.why}") from None
    colour = wants_colour("auto", is_terminal=sys.stdout.isatty())
    for change in sorted(changes, key=lambda change: change.path):
        lines = unified(change.path, change.before, change.after)
        if colour:
            lines = paint((((visible(line.rstrip("\n")), diff_style(line)),) for line in lines), colour=True)
        write(lines)
