"""What the page can be filtered by: the controls, and what each row says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct

from klaudit.model import Finding, Report, Setup
from klaudit.reports.html.markup import Child, Html, element
from klaudit.reports.html.weights import Shape, shape_of
from klaudit.reports.visible import visible


class Facet(Struct, frozen=True):
    """One choice: a control of the form, and `data-<name>` of each row.  `options` are value -> (what is shown, how many)."""

    name: str
    label: str
    options: Mapping[str, tuple[str, int]]


def facets(report: Report, shapes: Mapping[Shape, str]) -> tuple[Facet, ...]:
    rules = Counter((f.rule, f.name) for f in report.findings)
    drawn = Counter(shapes[shape] for setup in report.setups if (shape := shape_of(setup)) is not None)
    return (
        Facet("rule", "Rule", {rule: (f"{rule} {name}", n) for (rule, name), n in sorted(rules.items())}),
        Facet("severity", "Severity", _counted(f.severity for f in report.findings)),
        Facet("framework", "Framework", _counted(s.framework for s in report.setups)),
        Facet("verdict", "Verdict", _counted(s.verdict for s in report.setups)),
        Facet(
            "weight",
            "Score weight",
            {id: (f"{shape.title}: {shape.formula}", drawn[id]) for shape, id in shapes.items()},
        ),
    )


def address(facet: str, value: str) -> str:
    """What a link to the rows with this value points at: the page's own fragment, as the script writes and reads it."""
    return "#" + urlencode({facet: _word(value)})


def form(found: Sequence[Facet]) -> Html:
    """Hidden until the script says that it can be used."""
    search = element(
        "label",
        element("span", "Search"),
        element(
            "input",
            type="search",
            name="q",
            autocomplete="off",
            spellcheck="false",
            placeholder="path, setting, value, message",
        ),
        class_="search",
    )
    choices = (_choice(facet) for facet in found if facet.options)
    reset = element("button", "Clear", type="reset")
    count = element("output", "", id="count", aria_live="polite")
    return element(
        "form",
        search,
        choices,
        reset,
        count,
        id="filters",
        aria_label="Filter findings and set-ups",
        role="search",
        hidden=True,
    )


def row(
    id: str,
    title: Sequence[Child],
    body: Html,
    findings: Sequence[Finding],
    setups: Sequence[Setup],
    shapes: Mapping[Shape, str],
    sources: str,
    *,
    has_plot: bool,
) -> Html:
    """A finding or set-up: a line that opens.

    With a script, what is inside stays text until it is wanted (`noscript` is not parsed then): thousands of rows load at once.
    """
    drawn = {shapes[shape] for setup in setups if (shape := shape_of(setup)) is not None}
    return element(
        "li",
        element(
            "details",
            element("summary", *title),
            element("noscript", element("div", body, class_="body with-plot" if has_plot else "body")),
        ),
        id=id,
        data_rule=_words(finding.rule for finding in findings),
        data_severity=_words(finding.severity for finding in findings),
        data_framework=_words(setup.framework for setup in setups),
        data_verdict=_words(setup.verdict for setup in setups),
        data_weight=_words(drawn),
        data_sources=sources or None,
    )


def _choice(facet: Facet) -> Html:
    options = (
        element("option", f"{shown} ({count:,})", value=_word(value)) for value, (shown, count) in facet.options.items()
    )
    select = element("select", element("option", "all", value=""), options, name=facet.name)
    return element("label", element("span", facet.label), select)


def _counted(values: Iterable[str]) -> dict[str, tuple[str, int]]:
    return {
        value: (value, count) for value, count in sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    }


def _words(values: Iterable[str]) -> str | None:
    return " ".join(sorted(set(map(_word, values)))) or None


def _word(value: str) -> str:
    """A value as one word of a list: a framework of one's own may be called anything."""
    return "_".join(visible(value).split()) or "_"
