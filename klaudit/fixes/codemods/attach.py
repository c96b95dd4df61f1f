"""The edits of known rewrites beside the findings of a report, for programs that offer them to their user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from klaudit.code.screen import may_matter as may_hold_formulas
from klaudit.fixes.codemods.planning import Step, mend
from klaudit.fixes.codemods.proof import judged
from klaudit.model import Finding, Fix, Report
from klaudit.readers.source import UnreadableError
from klaudit.tree import Tree

_SUFFIXES = (".py", ".ipynb")
_TARGET = "k1-in-reward"


def with_fixes(report: Report, tree: Tree) -> Report:
    """The report with each finding on code whose rewrite is proven on its own as `unsafe`, with its edits."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        if finding.span.path.endswith(_SUFFIXES):
            by_path[finding.span.path].append(finding)
    fixes = {id(finding): fix for path, found in by_path.items() for finding, fix in _of_file(path, found, tree)}
    findings = (replace(each, fix=fixes[id(each)]) if id(each) in fixes else each for each in report.findings)
    return replace(report, findings=tuple(findings))


def _of_file(path: str, found: list[Finding], tree: Tree) -> Iterator[tuple[Finding, Fix]]:
    source = tree.readable(path)
    if source is None or not may_hold_formulas(source.data):
        return
    try:
        state = judged(source, tree.readable)
    except (UnreadableError, RecursionError):
        return
    cases = {(case.finding.rule, case.finding.span, case.finding.message): case for case in state.cases}
    for finding in found:
        case = cases.get((finding.rule, finding.span, finding.message))
        made = None if case is None else mend(source, case, state, tree.readable, _TARGET)
        if isinstance(made, Step):
            yield finding, Fix("unsafe", made.proposal.title, made.proposal.edits)
