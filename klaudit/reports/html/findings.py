"""The findings, worst first: a row each, with why, what to change, what set what, and the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from klaudit.model import Finding, Setup
from klaudit.reports.html.facets import row
from klaudit.reports.html.markup import Html, element, joined, listed
from klaudit.reports.html.remainder import is_explained
from klaudit.reports.html.source import Excerpts
from klaudit.reports.html.weight_section import figure
from klaudit.reports.html.weights import Shape
from klaudit.reports.html.words import place, provenance, remark, sentence, severity
from klaudit.reports.view import View

_SEVERITIES = ("error", "warning", "note")
_OF_GRADIENTS = ("KLA1", "KLA201", "KLA3", "KLA401")  # findings that a score weight explains
_MOST_SETUPS = 12  # that a finding links to


def in_order(findings: Sequence[Finding]) -> list[int]:
    """Indices, the most severe first, otherwise as the report has them."""
    return sorted(range(len(findings)), key=lambda at: _SEVERITIES.index(findings[at].severity))


def finding_row(
    at: int, finding: Finding, setups: Mapping[int, Setup], shapes: Mapping[Shape, str], excerpts: Excerpts
) -> Html:
    """`setups` are those that the finding is about, by their index in the report."""
    view = excerpts.view
    title = (
        severity(finding.severity),
        element("span", finding.rule, class_="rule"),
        " ",
        element("span", finding.name, class_="name"),
        " ",
        place(finding.span, view),
        element("span", sentence(finding.message), class_="message"),
    )
    body = joined(_body(finding, setups, shapes, excerpts))
    return row(
        f"f{at + 1}",
        title,
        body,
        [finding],
        list(setups.values()),
        shapes,
        excerpts.take_new(),
        has_plot="<figure" in body,
    )


def _body(
    finding: Finding, setups: Mapping[int, Setup], shapes: Mapping[Shape, str], excerpts: Excerpts
) -> Iterator[Html]:
    view = excerpts.view
    setup = next(iter(setups.values()), None)
    yield element(
        "dl",
        remark("Why", sentence(finding.why)),
        remark(_fix_label(finding), sentence(finding.fix.title)),
        remark("Confidence", finding.confidence if finding.confidence != "high" else ""),
        remark("Set-up", _links(setups, view)),
        remark(
            "Rule", element("a", f"About {finding.rule}", href=f"#{finding.rule}") if is_explained(finding) else None
        ),
        remark("Fingerprint", element("code", finding.fingerprint) if finding.fingerprint else None),
    )
    if setup is not None and finding.rule.startswith(_OF_GRADIENTS):
        yield figure(setup, shapes)
    yield excerpts.of(finding.span, finding.related, finding.severity)
    yield provenance(finding.related, setup, view, finding.span.path)


def _fix_label(finding: Finding) -> str:
    return "Fix (unsafe)" if finding.fix.safety == "unsafe" else "Fix"


def _links(setups: Mapping[int, Setup], view: View) -> Html | None:
    shown = [_link(at, setup, view) for at, setup in setups.items()][:_MOST_SETUPS]
    more = f" and {len(setups) - len(shown)} more" if len(setups) > len(shown) else None
    return joined((listed(shown), more)) if shown else None


def _link(at: int, setup: Setup, view: View) -> Html:
    condition = f" if {sentence(' and '.join(setup.assumes))}" if setup.assumes else ""
    return element("a", view.place(setup.path, setup.span.line, cell=setup.span.cell) + condition, href=f"#s{at + 1}")
