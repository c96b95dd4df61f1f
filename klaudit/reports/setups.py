"""Every set-up of a tree in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from klaudit.frameworks.pins import is_commit
from klaudit.model import FrameworkVersion, Report, Setup
from klaudit.reports.layout import Cell, Line, paint, paragraph, table
from klaudit.reports.setup_block import terms_in_brief, verdict_style
from klaudit.reports.view import NO_LIMIT, View
from klaudit.reports.visible import visible
from klaudit.reports.wording import counted, prose, version_name

_SOURCES = {
    "option": "as told",
    "vendored": "vendored",
    "lockfile": "locked",
    "requirement": "required",
    "assumed": "assumed",
}


def render(report: Report, view: View) -> Iterator[str]:
    return paint(_lines(report, view), colour=view.colour)


def _lines(report: Report, view: View) -> Iterator[Line]:
    if report.setups:
        has_conditions = any(setup.assumes for setup in report.setups)
        headers = [
            "set-up",
            "framework",
            "KL terms",
            "score weight w(d)",
            "verdict",
            *(["if"] if has_conditions else []),
        ]
        width = view.width if view.wrap else NO_LIMIT
        yield from table(headers, [_row(setup, view, has_conditions) for setup in report.setups], width)
        if not view.quiet:
            yield ()
    if not view.quiet:
        yield from paragraph(_outcome(report.setups), view.width, indent=2, style="strong")


def _row(setup: Setup, view: View, has_conditions: bool) -> list[Cell]:
    span = setup.span
    row: list[Cell] = [
        (view.place(span.path, span.line, cell=span.cell), "path"),
        (
            f"{version_name(setup)} ({_source(setup.version)})" if setup.version.value else version_name(setup),
            "plain",
        ),
        (terms_in_brief(setup), "plain"),
        (visible(setup.score_weight), "plain"),
        (setup.verdict, verdict_style(setup.verdict)),
    ]
    return [*row, (prose(" and ".join(setup.assumes)), "plain")] if has_conditions else row


def _source(version: FrameworkVersion) -> str:
    return "assumed, a commit is pinned" if is_commit(version.allowed) else _SOURCES[version.source]


def _outcome(setups: Sequence[Setup]) -> str:
    if not setups:
        return "No KL set-up there."
    verdicts = Counter(setup.verdict for setup in setups)
    return f"{counted(len(setups), 'set-up')}: {', '.join(f'{count:,} {verdict}' for verdict, count in verdicts.most_common())}."
