"""The edits of known rewrites beside the findings of a report, for programs that offer them to their user."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from msgspec.structs import replace

from klaudit.code.screen import may_matter as may_hold_formulas
from klaudit.fixes.codemods.excerpt import Excerpts
from klaudit.fixes.codemods.planning import Step, mend
from klaudit.fixes.codemods.proof import Judged, judged
from klaudit.fixes.codemods.proposal import Case
from klaudit.model import Finding, Fix, Report, Span
from klaudit.readers.source import Source, UnreadableError
from klaudit.tree import Tree

_SUFFIXES = (".py", ".ipynb")
_TARGET = "k1-in-reward"
_NOT_TRIED = " (its edits were not worked out in this scan, which would take long: `klaudit fix` does it)"

MOST_EFFORT = 500  # formulas that are judged again for the edits of one file; the largest trainers need 60

_Cases: TypeAlias = dict[tuple[str, Span, str], Case]


def with_fixes(report: Report, tree: Tree, deadline: float | None = None) -> Report:
    """The report with each finding on code whose rewrite is proven on its own as `unsafe`, with its edits.

    After `deadline`, a time of `time.monotonic`, no more are made, nor in one file more than a scan has time for; those findings say so.
    """
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        if finding.span.path.endswith(_SUFFIXES):
            by_path[finding.span.path].append(finding)
    fixes: dict[int, Fix] = {}
    for path, found in by_path.items():
        fixes |= {id(finding): fix for finding, fix in _of_file(path, found, tree, deadline)}
    findings = (replace(each, fix=fixes[id(each)]) if id(each) in fixes else each for each in report.findings)
    return replace(report, findings=tuple(findings))


def _of_file(path: str, found: list[Finding], tree: Tree, deadline: float | None) -> Iterator[tuple[Finding, Fix]]:
    source = tree.readable(path)
    if source is None or not may_hold_formulas(source.data):
        return
    states = _States(source, tree)
    effort = 0
    for finding in found:
        if effort > MOST_EFFORT or (deadline is not None and time.monotonic() > deadline):
            yield finding, replace(finding.fix, title=finding.fix.title + _NOT_TRIED)
            continue
        try:
            excerpt, state, cases = states.around(finding.span.start)
        except (UnreadableError, RecursionError):
            return
        effort += 1 + len(state.result.formulas)
        case = cases.get((finding.rule, finding.span, finding.message))
        made = None if case is None else mend(excerpt, case, state, tree.readable, _TARGET)
        if isinstance(made, Step):
            yield finding, Fix("unsafe", made.proposal.title, made.proposal.edits)


class _States:
    """What is found in the part of a file that a finding deals with."""

    def __init__(self, source: Source, tree: Tree) -> None:
        self._source = source
        self._tree = tree
        self._judged: dict[int, tuple[Source, Judged, _Cases]] = {}
        self._excerpts: Excerpts | None = None

    def around(self, at: int) -> tuple[Source, Judged, _Cases]:
        """Raises UnreadableError where the file is not Python."""
        if self._excerpts is None:
            self._excerpts = Excerpts(self._source)
        excerpt = self._excerpts.around(at)
        if id(excerpt) not in self._judged:
            state = judged(excerpt, self._tree.readable)
            cases = {(case.finding.rule, case.finding.span, case.finding.message): case for case in state.cases}
            self._judged[id(excerpt)] = (excerpt, state, cases)
        return self._judged[id(excerpt)]
