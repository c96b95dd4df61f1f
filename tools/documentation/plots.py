"""Plots of score weights, drawn from the theory's table as the HTML report draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from klaudit.reports.html.markup import element
from klaudit.reports.html.plot import VIEW, drawing
from klaudit.reports.html.words import tone
from klaudit.theory import TABLE, Row

GROUPS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("In the reward: w is the value", lambda row: row.placement == "reward"),
    ("In the loss: w is the slope", lambda row: row.placement == "loss" and row.gradient == "pathwise"),
    (
        "In the loss, times the attached ratio pi/pi_old: w is value plus slope",
        lambda row: row.gradient == "importance-weighted",
    ),
)


def gallery() -> str:
    """Every estimator in every place, as figures under headings."""
    parts = []
    for title, belongs in GROUPS:
        rows = [row for row in TABLE.values() if row.weight is not None and belongs(row)]
        parts.append(f"**{title}**\n\n{figures(rows)}")
    return "\n\n".join(parts)


def of(ids: Iterable[str]) -> str:
    """Figures of rows of the table by their ids.  Raises KeyError for one that is not there."""
    by_id = {row.id: row for row in TABLE.values()}
    return figures([by_id[id] for id in ids])


def figures(rows: Iterable[Row]) -> str:
    return "".join(("\n", element("div", (_figure(row) for row in rows), class_="weights"), "\n"))


def _figure(row: Row) -> str:
    assert row.weight is not None
    title = f"{row.id}: w(d) = {row.weight_text}, against w(d) = d"
    plot = element(
        "svg", drawing(row.weight), class_=f"plot {tone(row.verdict)}", viewBox=VIEW, role="img", aria_label=title
    )
    caption = element(
        "figcaption",
        element("strong", row.id.replace("-", " ")),
        element("br"),
        element("code", f"w(d) = {row.weight_text}"),
        element("br"),
        f"descends {row.descends}: {row.verdict}",
    )
    return element("figure", plot, caption)
