"""`klaudit setups`: every set-up of a tree, in a table."""

from __future__ import annotations

import click

from klaudit.cli.output import complain, remark, view_of, write
from klaudit.cli.parameters import Given, OneOf, scans
from klaudit.cli.session import Session


@click.command(epilog="Exit status: 0, or 2 for wrong usage, unreadable input or a fault of klaudit.")
@scans
@click.option(
    "--format", "format_name", type=OneOf(("text", "json")), default="text", show_default=True, help="What to write."
)
@click.pass_context
def command(ctx: click.Context, given: Given, format_name: str) -> None:
    """List what every launch, configuration and config object below PATHs trains with."""
    session = Session.start(given)
    report = session.scan()
    view = view_of(session.targets, given)
    if format_name == "json":
        from klaudit.reports.json import render_setups

        write(render_setups(report))
    else:
        from klaudit.reports.setups import render

        write(render(report, view))
    complain(report, view)
    if not given.quiet:
        remark(report)
    ctx.exit(2 if report.errors else 0)
