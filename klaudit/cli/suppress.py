"""`klaudit suppress`: comments that suppress today's findings, or the removal of those that nothing needs any more."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from klaudit.cli.output import complain, view_of, write
from klaudit.cli.parameters import Failure, Given, scans, words
from klaudit.cli.session import Session
from klaudit.reports.visible import visible
from klaudit.reports.wording import counted
from klaudit.tree import Tree

if TYPE_CHECKING:
    from klaudit.fixes.suppress import Annotation
    from klaudit.reports.view import View

_MEANT = re.compile(r"[\\*?\[\]!#]")  # what a pattern would take for more than itself


@click.command(
    epilog="Exit status: 0 nothing to do or all written, 1 changes shown but not written, or findings that no comment can suppress, 2 "
    "wrong usage, unreadable input, a file that could not be written or a fault of klaudit."
)
@scans
@click.option("--reason", metavar="TEXT", help="Why the findings are right to be there; written into each comment.")
@click.option("--write", "is_write", is_flag=True, help="Change the files; without it only the patch is shown.")
@click.option("--remove-unused", is_flag=True, help="Instead take out the suppressions that suppress nothing.")
@click.option(
    "--select",
    multiple=True,
    callback=words,
    metavar="RULE",
    help="Only these rules: ids, prefixes (KLA1), names. Repeatable.",
)
@click.option("--ignore", multiple=True, callback=words, metavar="RULE", help="Not these rules. Repeatable.")
@click.pass_context
def command(
    ctx: click.Context,
    given: Given,
    reason: str | None,
    is_write: bool,
    remove_unused: bool,
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
) -> None:
    """Write `# klaudit: ignore[...]` comments for the findings below PATHs: above the command, statement or entry of each.

    Shows a patch that `git apply` takes.  What a comment cannot suppress, as in JSON, is listed as an entry of `per-file-ignores`.
    """
    from klaudit.fixes.suppress import reason_problem

    if remove_unused == (reason is not None):
        raise Failure("say why with --reason TEXT, or take out what is not needed with --remove-unused: one of the two")
    if reason is not None and (problem := reason_problem(reason)):
        raise Failure(f"--reason: {problem}")
    session = Session.start(given, select=select, ignore=ignore)
    if session.configuration.options.stdin is not None and is_write:
        raise Failure("standard input cannot be written to: leave --write out")
    if is_write:
        session.refuse_ways_out()
    report = session.scan(suppressions=True)  # what has a comment needs no other one
    tree = Tree(session.targets.root, dict(session.targets.overlay))
    if reason is not None:
        from klaudit.fixes.suppress import suppress

        annotation = suppress(report.findings, tree, reason)
    else:
        from klaudit.fixes.unsuppress import remove_unused as removal

        annotation = removal(report, tree)
    if is_write:
        _apply(tree.root, annotation)
    view = view_of(session.targets, given)
    _tell(annotation, view, is_write=is_write, is_removal=remove_unused)
    _tell_refused(annotation, session, view)
    complain(report, view)
    ctx.exit(2 if report.errors else int(bool(annotation.refused) or (bool(annotation.contents) and not is_write)))


def _apply(root: str, annotation: Annotation) -> None:
    from klaudit.fixes.writing import WriteError, write_all

    try:
        write_all(root, annotation.originals, annotation.contents)
    except WriteError as error:
        raise Failure(f"nothing written: {error.path}: {error.why}") from None


def _tell(annotation: Annotation, view: View, *, is_write: bool, is_removal: bool) -> None:
    """The patch on standard output; the rest there too where that is a terminal."""
    from klaudit.fixes.migration import Plan
    from klaudit.reports.migrations import diff

    write(diff(Plan("", originals=annotation.originals, contents=annotation.contents), view))
    files = counted(len(annotation.contents), "file")
    if is_removal:
        done = f"{counted(annotation.count, 'comment')} in {files} without what is not needed"
    else:
        done = f"{counted(annotation.count, 'finding')} in {files} suppressed"
    told = [
        f"{done}{'' if is_write else ', not written: --write does that'}." if annotation.contents else "Nothing to do."
    ]
    _say(told)


def _tell_refused(annotation: Annotation, session: Session, view: View) -> None:
    if not annotation.refused:
        return
    told = []
    for refused in annotation.refused:
        rules = ", ".join(refused.rules)
        told.append(f"{view.path(refused.path)}: no comment can suppress {rules} here: {visible(refused.why)}")
    told += ["", "In the configuration instead:", "", "[tool.klaudit.per-file-ignores]"]
    file = session.configuration.path
    home = session.targets.root if file is None else os.path.realpath(os.path.dirname(file))
    for refused in annotation.refused:
        path = PurePath(os.path.relpath(os.path.join(session.targets.root, refused.path), home)).as_posix()
        pattern = _MEANT.sub(r"\\\g<0>", path)
        told.append(f"{json.dumps(visible(pattern))} = {json.dumps(list(refused.rules))}")
    _say(told)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line, err=not sys.stdout.isatty())
