"""The set-ups: a row each, with the terms it trains with, its score weight against the right one, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from klaudit.model import Evidence, Finding, Setup, Term
from klaudit.reports.html.facets import row
from klaudit.reports.html.markup import Html, element, joined, listed
from klaudit.reports.html.source import Excerpts
from klaudit.reports.html.weight_section import figure
from klaudit.reports.html.weights import Shape
from klaudit.reports.html.words import place, provenance, remark, sentence, verdict
from klaudit.reports.setup_block import terms_in_brief
from klaudit.reports.view import View
from klaudit.reports.wording import coefficient, version_name, version_source
from klaudit.theory import look_up

_KINDS = {"launch": "a launch of", "config": "a configuration of", "code": "code for"}


def setup_row(
    at: int, setup: Setup, findings: Mapping[int, Finding], shapes: Mapping[Shape, str], excerpts: Excerpts
) -> Html:
    """`findings` are those about the set-up, by their index in the report."""
    condition = sentence(" and ".join(setup.assumes))
    title = (
        verdict(setup.verdict),
        place(setup.span, excerpts.view),
        element("span", version_name(setup), class_="name"),
        element("span", terms_in_brief(setup) if setup.terms else "no KL term", class_="terms"),
        element("span", f"w(d) = {setup.score_weight}", class_="weight"),
        element("span", f"if {condition}", class_="message") if condition else None,
    )
    body = joined(_body(setup, findings, shapes, excerpts))
    return row(
        f"s{at + 1}",
        title,
        body,
        list(findings.values()),
        [setup],
        shapes,
        excerpts.take_new(),
        has_plot="<figure" in body,
    )


def _body(
    setup: Setup, findings: Mapping[int, Finding], shapes: Mapping[Shape, str], excerpts: Excerpts
) -> Iterator[Html]:
    view = excerpts.view
    yield element(
        "dl",
        remark("What", _what(setup, view)),
        remark("Started by", "" if setup.entry_point == setup.path else setup.entry_point),
        remark("Symbol", setup.symbol),
        remark("Algorithm", setup.algorithm),
        remark("Findings", _links(findings)),
    )
    if setup.terms:
        yield _terms(setup)
    yield figure(setup, shapes)
    remarks = list(dict.fromkeys(words for term in setup.terms for words in _remarks(term)))
    if remarks:
        yield element("ul", (element("li", sentence(words)) for words in remarks), class_="remarks")
    evidence = _evidence(setup)
    yield excerpts.of(setup.span, evidence)
    yield provenance(evidence, setup, view, setup.path)


def _what(setup: Setup, view: View) -> str:
    if setup.kind == "code" and not setup.version.value:
        return version_name(setup)
    return f"{_KINDS[setup.kind]} {version_name(setup)} ({version_source(setup.version, view)})"


def _links(findings: Mapping[int, Finding]) -> Html | None:
    links = (element("a", f"{each.rule} {each.name}", href=f"#f{at + 1}") for at, each in findings.items())
    return listed(links) if findings else None


def _terms(setup: Setup) -> Html:
    names = ("Placement", "Estimator", "Coefficient", "Score weight w(d)", "Descends", "Verdict")
    head = element("tr", (element("th", name, scope="col") for name in names))
    rows = [_term(term) for term in setup.terms]
    return element(
        "table",
        element("caption", "Terms"),
        element("thead", head),
        element("tbody", rows),
        class_="terms-table",
    )


def _term(term: Term) -> Html:
    tabled = look_up(term.estimator, term.placement, term.gradient)
    descends = tabled.descends if tabled.weight_text == term.score_weight else "see below" if term.facts else "unknown"
    return element(
        "tr",
        element("th", term.placement, scope="row"),
        element("td", term.estimator),
        element("td", coefficient(term)),
        element("td", element("code", term.score_weight)),
        element("td", "-" if term.active is False else descends),
        element("td", verdict(term.verdict)),
    )


def _remarks(term: Term) -> Iterator[str]:
    name = f"{term.estimator} in the {term.placement}"
    if term.active is False:
        if term.why_inactive:
            yield f"{name} is off: {term.why_inactive}"
        return
    if term.active is None:
        yield f"{name}: whether it is on cannot be known without running something"
    if term.normalised_by_group_std:
        yield f"{name} is divided by the group's standard deviation, which cancels its coefficient"
    yield from term.facts


def _evidence(setup: Setup) -> list[Evidence]:
    """What decides the terms, those that are off included: a report is asked why, too."""
    told: list[Evidence] = []
    for term in setup.terms:
        told += [each for each in term.evidence if each not in told]
    return told
