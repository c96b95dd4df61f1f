"""Reports that attack the page, and pages parsed as browsers parse them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from xml.etree.ElementTree import Element

import html5lib
import pytest
from msgspec.structs import replace

from klaudit.model import (
    Evidence,
    Finding,
    Fix,
    FrameworkVersion,
    Problem,
    Report,
    Setup,
    Span,
    Term,
    Withheld,
)
from klaudit.readers.source import Source
from klaudit.reports import View
from klaudit.reports.html import render

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</noscript><svg onload=alert(1)></svg>",
    "javascript:alert(1)",
    "</style><style>*{display:none}</style>",
    "<!--<script>",
    "]]><a href=javascript:alert(1)>x</a>",
    "\u202egnp.sh\u2066",
    "a\x00b\x1b[31m\r\n\x7f",
    "&lt;b&gt;&#60;i&#62;",
    "{{constructor.constructor('alert(1)')()}}",
    "lone \ud800 surrogate",
)

Page: TypeAlias = Element


def text_of(report: Report, view: View) -> str:
    return "".join(render(report, view))


def parse(text: str, *, scripting: bool = False) -> Page:
    """The page as a tree; raises html5lib's ParseError for what is not valid."""
    parser: Any = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree: Page = parser.parse(text, scripting=scripting)
    return tree


def words_of(element: Element) -> str:
    return "".join(element.itertext())


def hostile(words: str) -> Report:
    """A report that says `words` wherever a scanned file has a say."""
    span = Span(words, 0, 4, 1, 1, 1, 5)
    evidence = Evidence(words, words, "file", words, 1, span, words)
    nested = Evidence(words, {words: [words]}, "variable", words, None, None, words)
    term = Term("loss", "k3", "pathwise", 0.1, True, words, "biased", (evidence, nested), facts=(words,))
    off = replace(term, active=False, why_inactive=words, verdict="inactive")
    setup = Setup(
        words,
        span,
        "launch",
        words,
        FrameworkVersion(words, "requirement", words, words, 1),
        words,
        words,
        words,
        (words,),
        words,
        "biased",
        (term, off),
    )
    fix = Fix("unsafe", words)
    finding = Finding("KLA101", "k3-in-loss", "warning", "low", span, words, words, fix, words, (evidence, nested))
    return Report(
        setups=(setup, replace(setup, assumes=())),
        findings=(finding,),
        errors=(Problem(words, 1, words + "\n" + words),),
        files_seen=1,
        files_parsed=1,
        seconds=0.1,
        by_rule={"KLA101": 1},
        withheld=(Withheld(finding, "suppression", words, words, 1),),
        remarks=(words,),
    )


def hostile_view(words: str) -> View:
    data = f"{words}\n{words}\n".encode("utf-8", "surrogatepass")
    return View(source=lambda path: Source(path, data), prefix=words + "/")


@pytest.fixture
def page(report: Report, view: View) -> Callable[[], Page]:
    return lambda: parse(text_of(report, view))
