"""JUnit's XML, held against the schema of Jenkins and two readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest
import xmlschema
from msgspec.structs import replace

from klaudit.model import Report
from klaudit.reports import View, junit
from klaudit.reports.visible import visible


@pytest.fixture(scope="module")
def validate() -> Callable[[str], None]:
    return xmlschema.XMLSchema(str(Path(__file__).parent / "standards" / "junit-10.xsd")).validate


def xml(report: Report, view: View) -> str:
    return "".join(junit.render(report, view))


def test_it_follows_the_schema(
    report: Report, empty_report: Report, gated: Report, view: View, validate: Callable[[str], None]
) -> None:
    for each in (report, empty_report, gated, replace(report, seconds=12_345.6)):
        validate(xml(each, view))


def test_it_follows_the_schema_whatever_it_quotes(
    nasty_report: Report, nasty_view: View, nasty: str, validate: Callable[[str], None]
) -> None:
    text = xml(nasty_report, nasty_view)
    validate(text)
    failure = ET.fromstring(text).find(".//failure")
    assert failure is not None and failure.get("message", "").startswith(visible(nasty)[:3_000].split(" ")[0])


def test_findings_fail_notes_and_clean_set_ups_pass(report: Report, view: View) -> None:
    note = replace(report.findings[0], severity="note")
    suites = junitparser.JUnitXml.fromstring(xml(replace(report, findings=(*report.findings, note)), view).encode())
    assert (suites.tests, suites.failures, suites.errors) == (9, 2, 2)
    told = {
        (case.classname, case.name): [type(each).__name__ for each in case.result] for suite in suites for case in suite
    }
    assert told == {
        ("broken.yaml", "readable"): ["Error"],
        ("conf/ppo.yaml", "KLA102 k3-in-reward"): ["Failure"],
        ("conf/ppo.yaml", "KLA102 k3-in-reward (2)"): [],
        ("conf/ppo.yaml", "verl 0.9.1: k3 in reward, unknown (if active)"): [],
        ("examples/run.sh", "KLA101 k3-in-loss"): ["Failure"],
        ("examples/run.sh", "verl 0.9.1: k3 in loss, 0.001"): [],
        ("klaudit", "scan"): [],
        ("odd.py", "readable"): ["Error"],
        ("train.ipynb", "trl 1.9.0: no KL term, cell 1"): [],
    }


def test_a_set_up_with_a_finding_is_no_passed_test(report: Report, view: View) -> None:
    launch = next(setup for setup in report.setups if setup.path == "examples/run.sh")
    finding = replace(report.findings[1], launch=launch.span)
    assert 'name="verl 0.9.1: k3 in loss' not in xml(replace(report, findings=(finding,)), view)


def test_the_counts_are_those_of_the_tests(report: Report, view: View) -> None:
    root = ET.fromstring(xml(report, view))
    for element in (root, *root):
        assert element.get("tests") == str(len(element.findall(".//testcase")))
        assert element.get("failures") == str(len(element.findall(".//failure")))
        assert element.get("errors") == str(len(element.findall(".//error")))


def test_a_failure_says_where_why_and_what_to_do(report: Report, view: View) -> None:
    failure = ET.fromstring(xml(report, replace(view, repository_prefix="train/"))).find(".//failure")
    assert failure is not None and failure.get("type") == "error"
    assert (failure.text or "").splitlines() == [
        "train/conf/ppo.yaml:3:3",
        "k3 in the reward, unknown coefficient: descends KL(pi||ref) - KL(ref||pi)",
        "Why: k3 is deducted from the reward, which descends KL(pi||ref) - KL(ref||pi), unbounded below",
        "To mend it: set algorithm.kl_penalty=kl",
    ]


def test_no_report_is_without_a_test(empty_report: Report, gated: Report, view: View) -> None:
    (case,) = ET.fromstring(xml(empty_report, view)).iter("testcase")
    assert case.get("name") == "scan"
    assert "1 entry of the baseline is stale" in xml(gated, view)
    assert "3 findings withheld (2 suppressed, 1 in the baseline)" in xml(gated, view)
