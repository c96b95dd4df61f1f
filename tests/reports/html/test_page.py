"""The page as a document: valid, self-contained, complete without a script, and the same every time."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import pytest
from msgspec.structs import replace

from klaudit import __version__
from klaudit.model import Report, Withheld
from klaudit.reports import FORMATS, View, load
from klaudit.reports.html import page as head
from tests.reports.html.conftest import parse, text_of, words_of


def test_it_is_a_format_of_scan(report: Report, view: View) -> None:
    assert "".join(load("html").render(report, view)) == text_of(report, view)
    assert "html" in FORMATS


@pytest.mark.parametrize("scripting", [False, True])
def test_it_is_valid_html(report: Report, empty_report: Report, view: View, scripting: bool) -> None:
    for each in (report, empty_report, replace(report, setups=()), replace(report, findings=())):
        parse(text_of(each, view), scripting=scripting)


def test_it_is_ascii_and_the_same_every_time(report: Report, view: View) -> None:
    text = text_of(report, view)
    assert text.isascii()
    assert text == text_of(report, view)


def test_only_our_own_style_and_script_may_run(report: Report, view: View) -> None:
    tree = parse(text_of(report, view))
    (policy,) = [e.get("content", "") for e in tree.iter("meta") if e.get("http-equiv") == "Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["base-uri"] == directives["form-action"] == "'none'"
    for name in ("script", "style"):
        (element,) = tree.iter(name)
        digest = base64.b64encode(hashlib.sha256((element.text or "").encode()).digest()).decode()
        assert directives[f"{name}-src"] == f"'sha256-{digest}'"
        assert not element.attrib


def test_the_policy_stands_before_anything_it_governs(report: Report, view: View) -> None:
    text = text_of(report, view)
    assert text.index("Content-Security-Policy") < text.index("<style") < text.index("<script")
    assert text.index("<meta charset") < 200


def test_nothing_is_loaded(report: Report, view: View) -> None:
    """No address but the page's own fragments, no attribute that runs or styles anything."""
    tree = parse(text_of(report, view))
    ids = {e.get("id") for e in tree.iter() if e.get("id")}
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on") and name not in ("style", "src", "srcset", "action", "data"), name
            if name.endswith("href"):
                assert value.startswith("#"), value
                assert "=" in value or value[1:] in ids, f"a link to nothing: {value}"
    css = head.asset("style.css")
    assert "url(" not in css and "@import" not in css
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|eval|WebSocket|sendBeacon)\b\(?", head.asset("script.js"))


def test_assets_lie_in_the_package_and_cannot_end_their_element() -> None:
    for name, end in (("style.css", "</style"), ("script.js", "</script")):
        text = (files("klaudit.reports.html") / "assets" / name).read_text(encoding="ascii")
        assert end not in text.lower() and "<!--" not in text


def test_ids_are_unique(report: Report, view: View) -> None:
    ids = [e.get("id") for e in parse(text_of(report, view)).iter() if e.get("id")]
    assert len(ids) == len(set(ids))


def test_everything_is_told_without_a_script(report: Report, view: View) -> None:
    words = " ".join(words_of(parse(text_of(report, view)).find("body")).split())  # type: ignore[arg-type]
    for finding in report.findings:
        for told in (finding.rule, finding.name, finding.message, finding.why, finding.fix.title, finding.fingerprint):
            assert told in words
    for setup in report.setups:
        assert setup.score_weight in words and setup.verdict in words and (setup.entry_point or setup.path) in words
        for condition in setup.assumes:
            assert condition in words
        for term in setup.terms:
            assert all(fact in words for fact in term.facts)
            for each in term.evidence:
                assert each.setting in words
    assert "broken.yaml:3" in words and "found a tab" in words
    assert __version__ in words and "1,042 files looked at" in words
    assert "KL_COEF" not in words


def test_a_value_knows_where_it_was_set(report: Report, view: View) -> None:
    tree = parse(text_of(report, view))
    rows = {words_of(row) for row in tree.iter("tr")}
    assert "actor_rollout_ref.actor.kl_loss_coef0.001from a variable in examples/run.sh:2" in rows
    assert "algorithm.kl_ctrl.typefixeddefault of verl 0.9.1" in rows
    assert "algorithm.kl_ctrl.kl_coefunknown (hangs on COEF)set in conf/ppo.yaml:4" in rows


def test_withheld_findings_stand_apart_with_their_reasons(report: Report, view: View) -> None:
    kept, other = report.findings
    known = Withheld(other, "suppression", "agreed in the review", "examples/run.sh", 5)
    shown = replace(report, findings=(kept,), withheld=(known, Withheld(other, "baseline")), remarks=("a stale entry",))
    tree = parse(text_of(shown, view))
    (section,) = [s for s in tree.iter("section") if s.get("aria-labelledby") == "withheld"]
    words = words_of(section)
    assert "agreed in the review" in words and "suppressed by a comment, examples/run.sh:5" in words
    assert "known: in the baseline" in words and words.count(other.message) == 2
    (findings,) = [s for s in tree.iter("section") if s.get("aria-labelledby") == "findings"]
    assert other.message not in words_of(findings)
    assert "a stale entry" in words_of(tree)


def test_an_empty_report_says_so(empty_report: Report, view: View) -> None:
    tree = parse(text_of(empty_report, view))
    assert [words_of(e) for e in tree.iter("h1")] == ["No findings: no KL set-up there"]
    assert "3 files looked at" in words_of(tree)


def test_rules_that_were_found_are_explained(report: Report, view: View) -> None:
    tree = parse(text_of(report, view))
    (rule,) = [e for e in tree.iter("li") if e.get("id") == "KLA102"]
    assert "What to do" in words_of(rule) and "unbounded below" in words_of(rule)


def test_a_finding_that_the_catalogue_lacks_links_to_no_explanation(report: Report, view: View) -> None:
    odd = replace(report, findings=(replace(report.findings[0], rule="KLA999"),))
    test_nothing_is_loaded(odd, view)


def test_script_and_style_sheet_agree_on_how_many_rows_are_laid_out() -> None:
    (step,) = re.findall(r"const STEP = (\d+);", head.asset("script.js"))
    (first_left_out,) = re.findall(r"nth-child\(n \+ (\d+)\)", head.asset("style.css"))
    assert int(first_left_out) == int(step) + 1
