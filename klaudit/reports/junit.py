"""JUnit's XML, as Jenkins and GitLab read it: a suite a file, a failed test a finding, a passed one a set-up without any.

It keeps to the schema of Jenkins (junit-10.xsd), which is stricter than the readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from klaudit.model import Finding, Problem, Report, Setup
from klaudit.reports.places import repository_path
from klaudit.reports.setup_block import terms_in_brief
from klaudit.reports.text import outcome
from klaudit.reports.view import View
from klaudit.reports.visible import inert, visible
from klaudit.reports.withheld import withheld_in_words
from klaudit.reports.wording import prose, version_name

_FAILING = ("error", "warning")  # a note does not fail by default, and tests know nothing between passed and failed


def render(report: Report, view: View) -> Iterator[str]:
    """Valid XML whatever stands in the files: what XML has no characters for is written as escapes.

    The last suite is the scan itself, so that no report is without a test, which Jenkins takes for a fault.
    """
    files = _Files(report)
    suites = [_suite(path, files, view) for path in files.paths]
    suites.append(_scan(report))
    tests, failures, errors = (sum(int(suite.get(what, "0")) for suite in suites) for what in _COUNTS)
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}" time="{report.seconds:.3f}"'
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="klaudit" {counts}>\n'
    for suite in suites:
        ET.indent(suite)
        yield ET.tostring(suite, encoding="unicode") + "\n"
    yield "</testsuites>\n"


_COUNTS = ("tests", "failures", "errors")


class _Files:
    """What a report says of each file."""

    def __init__(self, report: Report) -> None:
        self.findings: dict[str, list[Finding]] = {}
        self.setups: dict[str, list[Setup]] = {}
        self.problems: dict[str, list[Problem]] = {}
        for finding in report.findings:
            self.findings.setdefault(finding.span.path, []).append(finding)
        for setup in report.setups:
            self.setups.setdefault(setup.path, []).append(setup)
        for problem in report.errors:
            self.problems.setdefault(problem.path, []).append(problem)
        self.paths = sorted({*self.findings, *self.setups, *self.problems})


def _suite(path: str, files: _Files, view: View) -> ET.Element:
    findings = files.findings.get(path, [])
    found = {finding.launch for finding in findings}
    suite = _Suite(visible(repository_path(path, view) or path))
    for finding in findings:
        cell = "" if finding.span.cell is None else f", cell {finding.span.cell + 1}"
        case = suite.case(f"{finding.rule} {finding.name}{cell}")
        lines = _lines(finding, view)
        if finding.severity in _FAILING:
            suite.fails(case, "failure", finding.severity, prose(finding.message), lines)
        else:
            ET.SubElement(case, "system-out").text = _text(lines)
    for setup in files.setups.get(path, []):
        if setup.span not in found:
            cell = "" if setup.span.cell is None else f", cell {setup.span.cell + 1}"
            suite.case(f"{version_name(setup)}: {_terms(setup)}{cell}")
    for problem in files.problems.get(path, []):
        told = prose(problem.message.partition("\n")[0])
        suite.fails(suite.case("readable"), "error", "unreadable", told, [view.place(path, problem.line), told])
    return suite.done()


def _terms(setup: Setup) -> str:
    told = prose(terms_in_brief(setup))
    return "no KL term" if told == "none" else told


def _lines(finding: Finding, view: View) -> list[str]:
    span = finding.span
    path = visible(repository_path(span.path, view) or span.path)
    lines = [f"{path}:{span.line}:{span.column}", prose(finding.message), f"Why: {prose(finding.why)}"]
    return [*lines, f"To mend it: {prose(finding.fix.title)}"] if finding.fix.title else lines


def _scan(report: Report) -> ET.Element:
    suite = _Suite("klaudit")
    told = [outcome(report), withheld_in_words(report), *map(prose, report.remarks)]
    ET.SubElement(suite.case("scan"), "system-out").text = _text([visible(line) for line in told if line])
    return suite.done()


class _Suite:
    """A suite that counts its tests; those of one name are numbered, for readers tell tests apart by name."""

    def __init__(self, name: str) -> None:
        self._element = ET.Element("testsuite", {"name": name})
        self._name = name
        self._names: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def case(self, name: str) -> ET.Element:
        self._names[name] += 1
        number = self._names[name]
        shown = f"{name} ({number})" if number > 1 else name
        return ET.SubElement(self._element, "testcase", {"classname": self._name, "name": shown, "time": "0"})

    def fails(self, case: ET.Element, how: str, kind: str, message: str, lines: Sequence[str]) -> None:
        self._failed[how] += 1
        ET.SubElement(case, how, {"type": kind, "message": message}).text = _text(lines)

    def done(self) -> ET.Element:
        counts = {"tests": self._names.total(), "failures": self._failed["failure"], "errors": self._failed["error"]}
        for what, count in counts.items():
            self._element.set(what, str(count))
        return self._element


def _text(lines: Sequence[str]) -> str:
    return "\n".join(map(inert, lines))
