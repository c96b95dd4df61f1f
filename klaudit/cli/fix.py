"""`klaudit fix`: biased set-ups migrated, as a patch or in place."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klaudit.cli.output import leads_out, view_of, write
from klaudit.cli.parameters import Failure, Given, OneOf, scans, words
from klaudit.cli.progress import shown_progress
from klaudit.cli.session import Session
from klaudit.fixes.context import in_context
from klaudit.fixes.migration import TARGETS, Request, RequestError

if TYPE_CHECKING:
    from klaudit.fixes.migration import Plan
    from klaudit.model import Report
    from klaudit.reports.view import View


@click.command(
    epilog="Exit status: 0 nothing to do or all written, 1 changes shown but not written, 2 wrong usage, unreadable input, a file that "
    "could not be written or a fault of klaudit."
)
@scans
@click.option("--write", "is_write", is_flag=True, help="Change the files; without it only the patch is shown.")
@click.option("--unsafe", is_flag=True, help="Also changes that reach beyond the values of settings.")
@click.option(
    "--target",
    type=OneOf(TARGETS),
    default=TARGETS[0],
    show_default=True,
    help="The set-up to migrate to, where the framework has it.",
)
@click.option(
    "--choice", default="", metavar="NAME", help="Of several ways to the target, the one of this name; all are listed."
)
@click.option(
    "--keep-std", is_flag=True, help="Leave group-std normalisation on and take the best set-up that remains with it."
)
@click.option(
    "--select",
    multiple=True,
    callback=words,
    metavar="RULE",
    help="Only what has these findings: ids, prefixes, names. Repeatable.",
)
@click.option("--ignore", multiple=True, callback=words, metavar="RULE", help="Not for these findings. Repeatable.")
@click.option(
    "--format",
    "format_name",
    type=OneOf(("text", "json")),
    default="text",
    show_default=True,
    help="What to write to standard output.",
)
@click.option(
    "--verify",
    "is_verified",
    is_flag=True,
    help="Also compute, on tensors, the gradient's bias before and after (needs torch).",
)
@click.option(
    "--summary", type=click.Path(dir_okay=False), metavar="FILE", help="Write what changes and what to watch to a file."
)
@click.pass_context
def command(
    ctx: click.Context,
    given: Given,
    is_write: bool,
    unsafe: bool,
    target: str,
    choice: str,
    keep_std: bool,
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
    format_name: str,
    is_verified: bool,
    summary: str | None,
) -> None:
    """Migrate the biased KL penalties below PATHs: by default to k1 in the reward, outside group-std normalisation.

    Shows a patch that `git apply` takes, and what changes in effect: in a pipe the patch alone is standard output.  Every change is
    proven before it is shown: the edited files are read again, the promised set-up must result and nothing else may change.
    """
    if summary is not None and leads_out(summary):
        raise Failure(f"--summary: cannot write to `{summary}`: a symbolic link leads out of the working directory")
    if is_verified and find_spec("torch") is None:
        raise Failure("--verify needs PyTorch: pip install 'klaudit[tensor]'")
    session = Session.start(given, select=select, ignore=ignore)
    request = Request(target, keep_std, unsafe, choice)
    ctx.exit(
        run(session, request, is_write=is_write, format_name=format_name, is_verified=is_verified, summary=summary)
    )


def run(
    session: Session,
    request: Request,
    *,
    is_write: bool,
    format_name: str = "text",
    is_verified: bool = False,
    summary: str | None = None,
) -> int:
    """Plans, writes if asked to, and tells.  Returns the exit status."""
    if session.configuration.options.stdin is not None and is_write:
        raise Failure("standard input cannot be written to: leave --write out")
    if is_write:
        session.refuse_ways_out()
    plan = _plan(session, request)
    if is_write:
        _apply(plan)
    view = view_of(in_context(session.targets), session.given)
    _tell(plan, view, is_write=is_write, format_name=format_name)
    if is_verified and plan.migrations:
        from klaudit.reports.effects import effects

        for line in effects(plan, view):
            click.echo(line, nl=False, err=True)
    if summary is not None:
        _summarise(plan, view, summary, is_write=is_write)
    if plan.problems:
        return 2
    return int(bool(plan.contents) and not is_write)


def show(session: Session) -> int:
    """`klaudit scan --diff`."""
    return run(session, Request(), is_write=False)


def mend(session: Session) -> None:
    """`klaudit scan --fix`: writes, and tells on standard error how much."""
    from klaudit.reports.migrations import total

    if session.configuration.options.stdin is not None:
        raise Failure("standard input cannot be written to: leave --fix out")
    session.refuse_ways_out()
    plan = _plan(session, Request())
    _apply(plan)
    if not session.given.quiet:
        click.echo(total(plan, is_written=True), err=True)


def attach(session: Session, report: Report) -> Report:
    """`klaudit scan --with-edits`: the report with the edits that mend its findings."""
    from klaudit.fixes.attaching import with_edits

    return with_edits(report, _plan(session, Request(), whole_repository=False).migrations)


def _plan(session: Session, request: Request, *, whole_repository: bool = True) -> Plan:
    from klaudit.fixes.planning import plan
    from klaudit.frameworks.load import RulesError

    with shown_progress(session.given.quiet) as progress:
        try:
            options = session.configuration.options
            return plan(session.given.paths, options, request, progress, whole_repository=whole_repository)
        except (RulesError, RequestError) as error:
            raise Failure(str(error)) from None


def _apply(plan: Plan) -> None:
    from klaudit.fixes.writing import WriteError, write_all

    if not plan.contents:
        return
    try:
        write_all(plan.root, plan.originals, plan.contents)
    except WriteError as error:
        raise Failure(f"nothing written: {error.path}: {error.why}") from None


def _tell(plan: Plan, view: View, *, is_write: bool, format_name: str) -> None:
    from klaudit.reports import migrations, migrations_json
    from klaudit.reports.layout import paint
    from klaudit.reports.text import problems

    told = migrations.summary(plan, view, is_written=is_write)
    if format_name == "json":
        write(migrations_json.render(plan, is_written=is_write))
    elif sys.stdout.isatty():
        write(migrations.diff(plan, view))
        write(told)
    else:
        write(migrations.diff(plan, view))
        for line in told:
            click.echo(line, nl=False, err=True)
    for line in paint(problems(plan.problems, view), colour=False):
        if line.strip():
            click.echo(line, nl=False, err=True)


def _summarise(plan: Plan, view: View, file: str, *, is_write: bool) -> None:
    from msgspec.structs import replace

    from klaudit.reports import migrations
    from klaudit.reports.view import DEFAULT_WIDTH

    plain = replace(view, width=DEFAULT_WIDTH, wrap=False, colour=False, quiet=False)
    try:
        Path(file).write_text(
            "".join(migrations.summary(plan, plain, is_written=is_write)).lstrip("\n"), encoding="utf-8"
        )
    except OSError as error:
        raise Failure(f"cannot write to `{file}`: {error.strerror or error}") from None
