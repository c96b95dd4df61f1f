"""What is known about frameworks, for reading in a terminal and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from klaudit.frameworks.rules import EntryPoint, Framework, Trainer
from klaudit.reports.layout import Cell, Line, paint, paragraph, table
from klaudit.reports.wording import counted


def render(frameworks: Sequence[Framework], width: int, *, colour: bool) -> Iterator[str]:
    """Each framework with its releases and what starts or configures its trainers."""
    return paint(_all(frameworks, width), colour=colour)


def render_list(frameworks: Sequence[Framework], width: int, *, colour: bool) -> Iterator[str]:
    """One row a framework."""
    rows: list[list[Cell]] = [
        [(f.id, "rule"), (f.title, "plain"), (_releases(f), "plain"), (", ".join(t.id for t in f.trainers), "plain")]
        for f in frameworks
    ]
    return paint(table(("framework", "title", "versions", "trainers"), rows, width), colour=colour)


def render_json(frameworks: Sequence[Framework]) -> Iterator[str]:
    """`klaudit-frameworks/1`: one row a framework."""
    rows = [
        {
            "framework": f.id,
            "title": f.title,
            "repository": f.repository,
            "distributions": list(f.distributions),
            "releases": list(f.release_names),
            "trainers": [
                {"id": t.id, "title": t.title, "entry_points": [*_starts(t)], "settings": sorted(_names(t))}
                for t in f.trainers
            ],
        }
        for f in frameworks
    ]
    yield json.dumps({"format": "klaudit-frameworks/1", "frameworks": rows}, indent=2) + "\n"


def _all(frameworks: Sequence[Framework], width: int) -> Iterator[Line]:
    for at, framework in enumerate(frameworks):
        if at:
            yield ()
        yield ((framework.id, "rule"), (f" {framework.title}", "strong"), (f"  {framework.repository}", "faint"))
        versions = ", ".join(framework.release_names)
        yield from paragraph(versions, width, first=(("  versions: ", "context"),), indent=4)
        for trainer in framework.trainers:
            yield from _trainer(trainer, width)


def _trainer(trainer: Trainer, width: int) -> Iterator[Line]:
    yield (("  trainer ", "context"), (trainer.id, "strong"), (f" {trainer.title}", "plain"))
    for label, words in (
        ("started by", [*_starts(trainer)]),
        ("classes", [name for each in trainer.classes for name in each.names]),
        ("settings", sorted(_names(trainer))),
    ):
        if words:
            yield from paragraph(
                ", ".join(dict.fromkeys(words)), width, first=((f"    {label}: ", "context"),), indent=6
            )


def _starts(trainer: Trainer) -> Iterator[str]:
    for point in trainer.entry_points:
        yield from _words(point)


def _words(point: EntryPoint) -> Iterator[str]:
    yield from point.modules
    yield from point.scripts
    yield from (" ".join(program) for program in point.programs)


def _names(trainer: Trainer) -> set[str]:
    return {name.name for setting in trainer.settings.values() for name in setting.names}


def _releases(framework: Framework) -> str:
    names = framework.release_names
    if len(names) < 2:
        return "".join(names)
    return f"{names[0]} to {names[-1]} ({counted(len(names), 'release')})"
