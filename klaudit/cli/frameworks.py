"""`klaudit frameworks`: which frameworks and versions are known."""

from __future__ import annotations

import sys

import click

from klaudit.cli.output import wants_colour, width_of_stdout, write
from klaudit.cli.parameters import Failure, OneOf
from klaudit.corrections import did_you_mean
from klaudit.effective import configuration_for
from klaudit.reports.visible import visible


@click.command()
@click.argument("name", nargs=-1, metavar="[NAME]...")
@click.option(
    "--format", "format_name", type=OneOf(("text", "json")), default="text", show_default=True, help="What to write."
)
@click.option("--config", type=click.Path(), metavar="FILE", help="Configuration file, instead of the nearest one.")
@click.option("--isolated", is_flag=True, help="Use no configuration file: only the frameworks that come with klaudit.")
@click.option(
    "--color", type=OneOf(("auto", "always", "never")), default="auto", show_default=True, help="When to use colours."
)
def command(name: tuple[str, ...], format_name: str, config: str | None, isolated: bool, color: str) -> None:
    """Say which frameworks and versions are known; with NAMEs, also what starts their trainers and which settings are read."""
    from klaudit.frameworks.load import load_frameworks
    from klaudit.reports import frameworks as report

    rules = configuration_for(".", config, isolated=isolated).options.rules
    known = load_frameworks(rules)
    by_id = {framework.id: framework for framework in known}
    for each in name:
        if each not in by_id:
            raise Failure(f"unknown framework `{visible(each)}`{did_you_mean(each, by_id)}")
    chosen = [by_id[each] for each in dict.fromkeys(name)]
    width, colour = width_of_stdout(), wants_colour(color, is_terminal=sys.stdout.isatty())
    if format_name == "json":
        write(report.render_json(chosen or known))
    elif chosen:
        write(report.render(chosen, width, colour=colour))
    else:
        write(report.render_list(known, width, colour=colour))
