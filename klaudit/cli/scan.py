"""`klaudit scan`: findings and the set-ups behind them."""

from __future__ import annotations

import time

import click
from msgspec.structs import replace

from klaudit.cli.alarm import ends_after
from klaudit.cli.outlook import outlook
from klaudit.cli.output import Plan, complain, remark, view_of
from klaudit.cli.parameters import Given, OneOf, scans, setup_names, words
from klaudit.cli.session import Session
from klaudit.configuration import FAIL_ON, FailOn, Options
from klaudit.findings.selection import rules_named
from klaudit.gate.step import PathSettings
from klaudit.model import Confidence, Report
from klaudit.policy import CONFIDENCES
from klaudit.reports import FORMATS
from klaudit.reports.wording import counted

_WITH_EDITS = frozenset({"json", "sarif"})  # formats whose readers can make the edits of a fix


@click.command(
    epilog="Exit status: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage, unreadable input or a fault of klaudit."
)
@scans
@click.option(
    "--format",
    "format_name",
    type=OneOf(tuple(FORMATS)),
    help="What to write.  [default: text, and to a file what its name says]",
)
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write the report to a file, instead of standard output; FORMAT=FILE writes one more in that format. Repeatable.",
)
@click.option(
    "--select",
    multiple=True,
    callback=words,
    metavar="RULE",
    help="Only these rules: ids, prefixes (KLA1), names. Repeatable.",
)
@click.option("--ignore", multiple=True, callback=words, metavar="RULE", help="Not these rules. Repeatable.")
@click.option(
    "--fail-on", type=OneOf(FAIL_ON), help="Least severe finding that makes the exit status 1.  [default: warning]"
)
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 whatever is found: the same as --fail-on never.")
@click.option(
    "--min-confidence", type=OneOf(CONFIDENCES), help="Least confidence of a finding that counts.  [default: low]"
)
@click.option(
    "--require",
    multiple=True,
    callback=setup_names,
    metavar="SETUP",
    help="Every set-up must be this one (k1-in-reward, unbiased, no-kl ...) or another one named so. Repeatable.",
)
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Leave out the findings that this file lists; see `klaudit baseline`.",
)
@click.option(
    "--diff-base", metavar="REF", help="Only what has changed since this commit, or since HEAD branched off it."
)
@click.option(
    "--with-edits",
    is_flag=True,
    help="Findings on settings carry the edits of `klaudit fix`, for json and sarif; takes about as long again as the scan.",
)
@click.option("--diff", "is_diff", is_flag=True, help="Instead of a report the patch that `klaudit fix` would make.")
@click.option(
    "--fix", "is_fix", is_flag=True, help="First make the changes of `klaudit fix --write`, then report what is left."
)
@click.pass_context
def command(
    ctx: click.Context,
    given: Given,
    format_name: str | None,
    outputs: tuple[str, ...],
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
    fail_on: FailOn | None,
    exit_zero: bool,
    min_confidence: Confidence | None,
    require: tuple[str, ...] | None,
    baseline: str | None,
    diff_base: str | None,
    with_edits: bool,
    is_diff: bool,
    is_fix: bool,
) -> None:
    """Find the KL penalties below PATHs (by default the working directory) and say what is wrong with them.

    `-` reads standard input.
    """
    plan = Plan.of(format_name, outputs)
    session = Session.start(
        given,
        select=select,
        ignore=ignore,
        fail_on="never" if exit_zero else fail_on,
        min_confidence=min_confidence,
        require=require,
        baseline=baseline,
        diff_base=diff_base,
    )
    if is_diff or is_fix:
        from klaudit.cli.fix import mend, show

        if is_diff:
            ctx.exit(show(session))
        mend(session)
    deadline = None if given.timeout is None else time.monotonic() + given.timeout
    report = session.scan()
    with ends_after(given.timeout):
        if not _WITH_EDITS.isdisjoint((plan.stdout, *(name for name, _ in plan.files))):
            from klaudit.fixes.codemods.attach import with_fixes
            from klaudit.tree import Tree

            report = with_fixes(report, Tree(session.targets.root, dict(session.targets.overlay)), deadline)
        if with_edits:
            from klaudit.cli.fix import attach

            report = attach(session, report)
        options = session.configuration.options
        view = replace(
            view_of(session.targets, given),
            after=outlook(session, report),
            each_note=frozenset(report.by_rule) if options.fail_on == "note" else rules_named(select or ()),
        )
        plan.write(report, view)
    if plan.stdout != "text" or given.quiet:
        complain(report, view)
    if plan.stdout != "text" and not given.quiet:
        remark(report)
    if plan.stdout is None and not given.quiet:
        outcome = counted(len(report.findings), "finding")
        if report.errors:
            outcome += f", {counted(len(report.errors), 'error')}"
        click.echo(f"{outcome}: see {', '.join(file for _, file in plan.files)}", err=True)
    ctx.exit(exit_status(report, options, session.targets.root))


def exit_status(report: Report, options: Options, root: str) -> int:
    """What a caller is told: unreadable input outweighs findings."""
    if report.errors:
        return 2
    settings = PathSettings(options, root)
    return int(any(map(settings.fails, report.findings)))
