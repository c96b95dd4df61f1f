"""Entries of the catalogue, for reading in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from klaudit.findings.catalogue import Entry, Example
from klaudit.reports.layout import Cell, Line, Style, paint, paragraph, table


def render(entries: Sequence[Entry], width: int, *, colour: bool) -> Iterator[str]:
    """Each entry in full."""
    return paint(_all(entries, width), colour=colour)


def render_list(entries: Iterable[Entry], width: int, *, colour: bool) -> Iterator[str]:
    """One row an entry."""
    rows: list[list[Cell]] = [
        [
            (entry.id, "rule"),
            (entry.name, "plain"),
            (entry.severity, entry.severity),
            (_one_line(entry.summary), "plain"),
        ]
        for entry in entries
    ]
    return paint(table(("rule", "name", "severity", "what it says"), rows, width), colour=colour)


def _all(entries: Sequence[Entry], width: int) -> Iterator[Line]:
    for at, entry in enumerate(entries):
        if at:
            yield from ((), ())
        yield from _entry(entry, width)


def _entry(entry: Entry, width: int) -> Iterator[Line]:
    yield (
        (entry.id, "rule"),
        (f" {entry.name} ", "strong"),
        (f"[{entry.severity}]", entry.severity),
        (f" since {entry.since}", "faint"),
    )
    yield ()
    yield from _text(entry.summary, width, "strong")
    yield from _section("Why", entry.why, width)
    yield from _section("What to do", entry.fix, width)
    for example in entry.examples:
        yield from _example(example)
    if entry.references:
        yield from _title("References")
        for reference in entry.references:
            yield from paragraph(_one_line(reference), width, first=(("- ", "context"),), indent=2)


def _example(example: Example) -> Iterator[Line]:
    yield from _title(f"Example ({example.language})" + (f": {example.title}" if example.title else ""))
    for name, text in example.files:
        yield from _code(name, text, "plain")
    yield from _code("wrong", example.wrong, "warning")
    yield from _code("right", example.right, "good")


def _code(label: str, text: str, style: Style) -> Iterator[Line]:
    yield ((f"{label}:", style),)
    for line in text.rstrip("\n").split("\n"):
        yield ((f"    {line}", "plain"),)


def _section(title: str, text: str, width: int) -> Iterator[Line]:
    if text:
        yield from _title(title)
        yield from _text(text, width, "plain")


def _title(title: str) -> Iterator[Line]:
    yield ()
    yield ((title, "header"),)


def _text(text: str, width: int, style: Style) -> Iterator[Line]:
    """Paragraphs refilled; indented lines (formulas, lists) as they are."""
    for at, block in enumerate(text.strip().split("\n\n")):
        if at:
            yield ()
        if any(line.startswith((" ", "- ", "* ", "|")) for line in block.split("\n")):
            for line in block.split("\n"):
                yield ((line, style),)
        else:
            yield from paragraph(_one_line(block), width, style=style)


def _one_line(text: str) -> str:
    return " ".join(text.split())
