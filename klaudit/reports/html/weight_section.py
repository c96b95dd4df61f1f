"""The plots: every score weight that is trained with here, against the right one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from klaudit.model import Setup
from klaudit.reports.html.facets import address
from klaudit.reports.html.markup import NOTHING, Html, element
from klaudit.reports.html.plot import shown, symbol
from klaudit.reports.html.weights import Shape, shape_of, why_no_shape
from klaudit.reports.html.words import tone, verdict
from klaudit.reports.wording import counted

_PRINCIPLE = (
    "Every penalty gives an expected gradient E[w(d) \u00b7 \u2207log \u03c0], with d = log \u03c0 \u2212 log \u03c0_ref of a "
    "sampled token. KL(pi||ref) is descended exactly when w(d) = \u03b2\u00b7d + const."
)


def ids(shapes: Iterable[Shape]) -> dict[Shape, str]:
    return {shape: f"w{at}" for at, shape in enumerate(shapes, 1)}


def symbols(shapes: Mapping[Shape, str]) -> Html:
    """The plots once, to be used by id."""
    drawn = (symbol(shape.weight, f"plot-{id}") for shape, id in shapes.items())
    return element("svg", drawn, class_="symbols", aria_hidden="true", width=0, height=0, focusable="false")


def section(counts: Mapping[Shape, int], ids: Mapping[Shape, str]) -> Html:
    """A card for each weight.  Nothing where no set-up has one that can be drawn."""
    if not counts:
        return NOTHING
    cards = (_card(shape, ids[shape], count) for shape, count in counts.items())
    legend = element(
        "p",
        f"{_PRINCIPLE} Each plot shows w(d)/\u03b2 of what was found ",
        element("span", "solid", class_="key"),
        " and the right one, w(d) = d, ",
        element("span", "dashed", class_="key right"),
        "; both axes in nats, d from \u22122.5 to 2.5, w from \u22123.5 to 3.5.",
        class_="legend",
    )
    return element(
        "section",
        element("h2", "Score weights", id="weights"),
        legend,
        element("ul", cards, class_="cards"),
        aria_labelledby="weights",
    )


def figure(setup: Setup, ids: Mapping[Shape, str]) -> Html:
    """The plot of one set-up, or why there is none."""
    shape = shape_of(setup)
    if shape is None:
        why = why_no_shape(setup)
        return element("p", "Score weight: ", why, class_="no-plot") if why else NOTHING
    return element(
        "figure",
        _plot(shape, ids[shape]),
        element(
            "figcaption",
            element("code", f"w(d)/\u03b2 = {shape.formula}"),
            " against the right one, ",
            element("code", "d"),
            ".",
        ),
    )


def _card(shape: Shape, id: str, count: int) -> Html:
    words = (
        element("a", shape.title, href=address("weight", id), class_="card-title"),
        element("code", f"w(d)/\u03b2 = {shape.formula}"),
        element("span", f"descends {shape.descends}", class_="descends") if shape.descends else None,
        element("span", verdict(shape.verdict), " ", counted(count, "set-up"), class_="count"),
    )
    return element("li", _plot(shape, id), element("div", *words), class_="card")


def _plot(shape: Shape, id: str) -> Html:
    right = "the same line as the right one" if shape.is_right else "differs from the right one, w(d) = d"
    return shown(f"plot-{id}", f"Plot of w(d) = {shape.formula}: {right}", tone(shape.verdict))
