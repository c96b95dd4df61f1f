"""The rest of the page: the rules that were found, findings that do not count and why, what could not be read, remarks."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from klaudit.findings import catalogue
from klaudit.model import Finding, Problem, Report, Severity, Withheld
from klaudit.reports.html.markup import NOTHING, Html, element
from klaudit.reports.html.words import place, sentence, severity
from klaudit.reports.ranking import SEVERITIES
from klaudit.reports.view import View

_BY = {
    "suppression": "suppressed by a comment",
    "baseline": "known: in the baseline",
    "unchanged": "unchanged since the commit compared with",
    "allowed": "allowed by the policy",
    "confidence": "below the least confidence that counts",
}


def rules(findings: Sequence[Finding]) -> Html:
    """What the catalogue says of the rules that were found, with the severities that their findings have here.

    How severe a finding is can hang on what is found, and on the configuration.
    """
    found: dict[str, tuple[str, set[Severity]]] = {}
    for finding in filter(is_explained, findings):
        found.setdefault(finding.rule, (finding.name, set()))[1].add(finding.severity)
    items = [_rule(rule, name, levels) for rule, (name, levels) in sorted(found.items())]
    return _section("About the rules", "rules", element("ul", items, class_="rows", role="list")) if items else NOTHING


def is_explained(finding: Finding) -> bool:
    """Whether the catalogue has it."""
    return catalogue.names().get(finding.name) == finding.rule


def withheld(report: Report, view: View) -> Html:
    if not report.withheld:
        return NOTHING
    names = ("Finding", "Where", "Withheld because", "Reason given")
    head = element("tr", (element("th", name, scope="col") for name in names))
    table = element(
        "table",
        element("caption", "They count neither for the exit status nor for the sums above.", class_="said"),
        element("thead", head),
        element("tbody", (_withheld(each, view) for each in report.withheld)),
        class_="wide",
    )
    return _section("Withheld findings", "withheld", table)


def errors(problems: Sequence[Problem], view: View) -> Html:
    if not problems:
        return NOTHING
    head = element("tr", (element("th", name, scope="col") for name in ("File", "What is wrong")))
    rows = (
        element(
            "tr",
            element("th", view.place(each.path, each.line), scope="row", class_="place"),
            element("td", sentence(each.message.partition("\n")[0])),
        )
        for each in problems
    )
    table = element(
        "table",
        element("caption", "Files that could not be read", class_="said"),
        element("thead", head),
        element("tbody", rows),
        class_="wide",
    )
    return _section("Errors", "errors", table)


def remarks(report: Report) -> Html:
    if not report.remarks:
        return NOTHING
    return _section("Remarks", "remarks", element("ul", (element("li", sentence(words)) for words in report.remarks)))


def _withheld(each: Withheld, view: View) -> Html:
    finding = each.finding
    by = _BY[each.by] + (f", {view.place(each.path, each.line)}" if each.path is not None else "")
    return element(
        "tr",
        element("th", severity(finding.severity), " ", f"{finding.rule} {finding.name}", scope="row"),
        element("td", place(finding.span, view), element("br"), sentence(finding.message)),
        element("td", by),
        element("td", sentence(each.reason) or element("em", "none")),
    )


def _rule(rule: str, name: str, levels: Container[Severity]) -> Html:
    entry = catalogue.entry(name)
    parts = [element("h3", "Why"), *_paragraphs(entry.why), element("h3", "What to do"), *_paragraphs(entry.fix)]
    if entry.references:
        parts += [element("h3", "References"), element("ul", (element("li", each) for each in entry.references))]
    shown = [part for level in SEVERITIES if level in levels for part in (" ", severity(level))]
    title = (*shown[1:], element("span", rule, class_="rule"), " ", element("span", name, class_="name"))
    summary = element("summary", *title, element("span", entry.summary, class_="message"))
    return element("li", element("details", summary, element("div", *parts, class_="prose")), id=rule)


def _paragraphs(text: str) -> Iterator[Html]:
    """Paragraphs refilled; blocks with indented lines (formulas, lists) as they are."""
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        if any(line.startswith((" ", "- ", "* ", "|")) for line in lines):
            yield element("pre", (element("span", line, class_="line") for line in lines))
        else:
            yield element("p", " ".join(block.split()))


def _section(title: str, id: str, *content: Html) -> Html:
    return element("section", element("h2", title, id=id), *content, aria_labelledby=id)
