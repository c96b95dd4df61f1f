"""`klaudit explain`: what a finding means, from the catalogue."""

from __future__ import annotations

import sys

import click

from klaudit.cli.output import wants_colour, width_of_stdout, write
from klaudit.cli.parameters import Failure, OneOf
from klaudit.configuration_file import did_you_mean
from klaudit.findings import catalogue
from klaudit.reports.visible import visible


@click.command()
@click.argument("rule", nargs=-1, metavar="[RULE]...")
@click.option(
    "--color", type=OneOf(("auto", "always", "never")), default="auto", show_default=True, help="When to use colours."
)
def command(rule: tuple[str, ...], color: str) -> None:
    """Explain findings, given by id (KLA101), beginning of an id (KLA1) or name (k3-in-loss); without any, list all."""
    from klaudit.reports import explanation

    entries = catalogue.load()
    chosen = [entry for selector in rule for entry in _chosen(selector, entries)]
    width = width_of_stdout()
    colour = wants_colour(color, is_terminal=sys.stdout.isatty())
    if chosen:
        write(explanation.render(list(dict.fromkeys(chosen)), width, colour=colour))
    else:
        write(explanation.render_list(entries, width, colour=colour))


def _chosen(selector: str, entries: tuple[catalogue.Entry, ...]) -> list[catalogue.Entry]:
    wanted = selector.strip()
    found = [entry for entry in entries if wanted.lower() == entry.name]
    if not found and wanted:
        found = [entry for entry in entries if entry.id.startswith(wanted.upper())]
    if not found:
        known = [name for entry in entries for name in (entry.id, entry.name)]
        hint = did_you_mean(wanted, known) or "; `klaudit explain` lists them"
        raise Failure(f"unknown rule `{visible(selector)}`{hint}")
    return found
