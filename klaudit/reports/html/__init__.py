"""The report as a page: one file that loads nothing, readable without a script, filterable with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from klaudit.model import Report
from klaudit.reports.html import page, remainder, summary, weight_section
from klaudit.reports.html.facets import facets, form
from klaudit.reports.html.findings import finding_row, in_order
from klaudit.reports.html.links import Links, links
from klaudit.reports.html.markup import Html, element
from klaudit.reports.html.setups import setup_row
from klaudit.reports.html.source import Excerpts
from klaudit.reports.html.weights import Shape, shapes
from klaudit.reports.view import View


def render(report: Report, view: View) -> Iterator[str]:
    """Pieces of one HTML document, in ASCII."""
    counts = shapes(report.setups)
    ids = weight_section.ids(counts)
    yield "<!DOCTYPE html>\n"
    yield '<html lang="en">\n'
    yield page.head(f"klaudit: {summary.outcome(report)}") + "\n<body>\n"
    yield element("a", "Skip to the findings", href="#findings", class_="skip") + "\n"
    yield weight_section.symbols(ids) + "\n"
    yield summary.header(report, view) + "\n<main>\n"
    yield summary.section(report) + "\n"
    yield weight_section.section(counts, ids) + "\n"
    yield form(facets(report, ids)) + "\n"
    yield from _rows(report, view, ids, links(report))
    yield remainder.withheld(report, view)
    yield remainder.errors(report.errors, view)
    yield remainder.remarks(report)
    yield remainder.rules(report.findings)
    yield "\n</main>\n" + page.script() + "\n</body>\n</html>\n"


def _rows(report: Report, view: View, ids: Mapping[Shape, str], about: Links) -> Iterator[str]:
    excerpts = Excerpts(view)
    yield from _list(
        "Findings",
        "findings",
        "No findings.",
        (
            finding_row(at, report.findings[at], {i: report.setups[i] for i in about.setups[at]}, ids, excerpts)
            for at in in_order(report.findings)
        ),
    )
    yield from _list(
        "Set-ups",
        "setups",
        "No KL set-up there.",
        (
            setup_row(at, setup, {i: report.findings[i] for i in about.findings.get(at, ())}, ids, excerpts)
            for at, setup in enumerate(report.setups)
        ),
    )


def _list(title: str, id: str, nothing: str, rows: Iterator[Html]) -> Iterator[str]:
    """A section of rows, written one by one: a report may hold thousands."""
    yield f'<section aria-labelledby="{id}">\n'
    open_all = element("button", "Open all shown", type="button", class_="open-all", hidden=True)
    yield element("div", element("h2", title, id=id, tabindex=-1), open_all, class_="section-head") + "\n"
    first = next(rows, None)
    if first is None:
        yield element("p", nothing) + "\n</section>\n"
        return
    yield f'<ul class="rows filtered" id="{id}-list" role="list">\n' + first + "\n"
    for row in rows:
        yield row + "\n"
    none = element("p", "Nothing matches the filter.", class_="no-match", hidden=True)
    more = element("button", "Show more", type="button", class_="more", hidden=True)
    yield f"</ul>\n{none}{more}\n</section>\n"


__all__ = ["render"]
