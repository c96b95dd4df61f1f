"""`klaudit explain`: what a finding means, from the catalogue, or what a line of a file has to do with it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from klaudit.cli.explain_place import Place, explain
from klaudit.cli.output import wants_colour, width_of_stdout, write
from klaudit.cli.parameters import Failure, OneOf
from klaudit.corrections import did_you_mean
from klaudit.findings import catalogue
from klaudit.reports.visible import visible


@click.command()
@click.argument("rule", nargs=-1, metavar="[RULE|FILE:LINE]...")
@click.option(
    "--color", type=OneOf(("auto", "always", "never")), default="auto", show_default=True, help="When to use colours."
)
def command(rule: tuple[str, ...], color: str) -> None:
    """Explain findings, given by id (KLA101), beginning of an id (KLA1) or name (k3-in-loss); without any, list all.

    FILE:LINE explains a place that a report names: the findings and set-ups that the line has a part in, or the KL formula on a line of
    Python or of a notebook: whose log-probabilities, which estimator, the way to the loss.
    """
    from klaudit.reports import explanation

    places = [place for each in rule if (place := Place.of(each)) is not None]
    selectors = [each for each in rule if Place.of(each) is None]
    met: set[str] = set()
    for place in places:
        told, rules = explain(place, color)
        write(told)
        met |= rules
    entries = catalogue.load()
    chosen = [entry for selector in selectors for entry in _chosen(selector, entries)]
    chosen += [entry for entry in entries if entry.id in met]
    width = width_of_stdout()
    colour = wants_colour(color, is_terminal=sys.stdout.isatty())
    if chosen:
        write(explanation.render(list(dict.fromkeys(chosen)), width, colour=colour))
    elif not places:
        write(explanation.render_list(entries, width, colour=colour))


def _chosen(selector: str, entries: tuple[catalogue.Entry, ...]) -> list[catalogue.Entry]:
    wanted = selector.strip()
    found = [entry for entry in entries if wanted.lower() == entry.name]
    if not found and wanted:
        found = [entry for entry in entries if entry.id.startswith(wanted.upper())]
    if not found and Path(wanted).is_file():
        raise Failure(
            f"`{selector}` is a file: give the line too, as in `{selector}:1`; `klaudit scan` finds what is in it"
        )
    if not found:
        known = [name for entry in entries for name in (entry.id, entry.name)]
        hint = did_you_mean(wanted, known) or "; `klaudit explain` lists them"
        raise Failure(f"unknown rule `{visible(selector)}`{hint}")
    return found
