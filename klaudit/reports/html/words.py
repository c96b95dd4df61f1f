"""Small pieces that several parts of the page show the same way: places, verdicts, severities, evidence."""

from __future__ import annotations

from collections.abc import Sequence

from klaudit.model import Evidence, Setup, Severity, Span, Verdict
from klaudit.reports.html.markup import NOTHING, Html, element, joined
from klaudit.reports.setup_block import verdict_style
from klaudit.reports.view import View
from klaudit.reports.wording import is_step, prose, value, way, whence


def tone(verdict: Verdict) -> str:
    """The colour's name: good, faint, warning or error."""
    return verdict_style(verdict)


def verdict(of: Verdict) -> Html:
    return element("span", of, class_=f"tag {tone(of)}")


def severity(of: Severity) -> Html:
    return element("span", of, class_=f"tag {of}")


def place(span: Span, view: View) -> Html:
    """Path, line and column; a long one is best broken before the file's name."""
    folder, slash, name = view.place(span.path, span.line, span.column, span.cell).rpartition("/")
    return element("span", folder, slash, element("wbr") if folder else None, name, class_="place")


def remark(label: str, words: str | Html | None) -> Html:
    """A row of a description list; nothing where there is nothing to say."""
    return joined((element("dt", label), element("dd", words))) if words else NOTHING


def provenance(evidence: Sequence[Evidence], setup: Setup | None, view: View, path: str) -> Html:
    """Setting, value, where it was set; and the lines of code that a formula passes."""
    told = [each for each in evidence if not is_step(each)]
    steps = way([each for each in evidence if is_step(each)], view, here=path)
    rows = [
        element(
            "tr",
            element("th", each.setting, scope="row"),
            element("td", element("code", value(each.value))),
            element("td", whence(each, setup, view)),
        )
        for each in told
    ]
    head = element("tr", *(element("th", name, scope="col") for name in ("Setting", "Value", "Where it was set")))
    table = element(
        "table",
        element("caption", "Effective settings"),
        element("thead", head),
        element("tbody", rows),
        class_="evidence",
    )
    passed = element("p", "By way of ", element("span", steps, class_="place"), class_="steps") if steps else None
    return joined((table if rows else None, passed))


def sentence(words: str) -> str:
    """Prose of a report as it is told elsewhere too: on one line, not endless."""
    return prose(words)
