"""`klaudit explain`: what a finding means, from the catalogue, or what a formula on a line of code is and why."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from klaudit.cli.output import prefix_of, wants_colour, width_of_stdout, write
from klaudit.cli.parameters import Failure, OneOf
from klaudit.configuration import Options
from klaudit.configuration_file import did_you_mean
from klaudit.discover import locate
from klaudit.findings import catalogue
from klaudit.reports.visible import visible
from klaudit.tree import TooLargeError, Tree

_PLACE = re.compile(r"(?P<path>.+\.(?:py|ipynb)):(?P<line>\d+)(?::\d+)?")


@click.command()
@click.argument("rule", nargs=-1, metavar="[RULE|FILE:LINE]...")
@click.option(
    "--color", type=OneOf(("auto", "always", "never")), default="auto", show_default=True, help="When to use colours."
)
def command(rule: tuple[str, ...], color: str) -> None:
    """Explain findings, given by id (KLA101), beginning of an id (KLA1) or name (k3-in-loss); without any, list all.

    FILE:LINE explains the KL formula on a line of Python or of a notebook: whose log-probabilities, which estimator, the way to the loss.
    """
    from klaudit.reports import explanation

    places = [match for each in rule if (match := _PLACE.fullmatch(each))]
    for place in places:
        write(_of_line(place["path"], int(place["line"])))
    rule = tuple(each for each in rule if not _PLACE.fullmatch(each))
    if places and not rule:
        return
    entries = catalogue.load()
    chosen = [entry for selector in rule for entry in _chosen(selector, entries)]
    width = width_of_stdout()
    colour = wants_colour(color, is_terminal=sys.stdout.isatty())
    if chosen:
        write(explanation.render(list(dict.fromkeys(chosen)), width, colour=colour))
    else:
        write(explanation.render_list(entries, width, colour=colour))


def _of_line(path: str, line: int) -> Iterator[str]:
    """The reasoning about a line, with paths as seen from the working directory."""
    from klaudit.code.scan import explain_line
    from klaudit.readers.source import Source, UnreadableError

    targets = locate([path], Options())
    if targets.problems or not targets.files:
        raise Failure(f"{path}: {targets.problems[0].message if targets.problems else 'a folder, not a file'}")
    tree = Tree(targets.root)

    def load(other: str) -> Source | None:
        try:
            return tree.source(other)
        except (OSError, TooLargeError):
            return None

    try:
        source = tree.source(targets.files[0])
        if source is None:
            raise Failure(f"{path}: no such file")
        if line > (lines := source.data.count(b"\n") + 1) or not line:
            raise Failure(f"{path}: there is no line {line}, the file has {lines}")
        text = explain_line(source, line, load, prefix=prefix_of(targets.root))
    except (UnreadableError, TooLargeError) as error:
        raise Failure(f"{path}: {error}") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from None
    for row in text.splitlines():
        yield visible(row) + "\n"


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
