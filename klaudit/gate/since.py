"""What was there before: today's findings against those of an earlier commit, found by judging the same files as they were.

Comparing findings and not lines has a changed default, base configuration, sourced script or pinned version count where it changes what
a launch trains with, whatever file it stands in; and nothing count that merely has moved.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

from klaudit.gate.base import Base, candidates, find_base
from klaudit.gate.commit_tree import CommitTree
from klaudit.gate.renames import renames
from klaudit.gate.step import Gate
from klaudit.model import Finding, Problem, Report
from klaudit.tree import TooLargeError, Tree

_LINE_NUMBER = re.compile(r"\bline \d+")
_BY_DEFAULT = re.compile(r" by default\b")
_MOST_LINES = 5_000  # of a file whose lines are matched to tell which of several findings that are alike is the new one


class Unchanged(Struct, frozen=True):
    """`unchanged` are findings of the report; `base` names the commit for people."""

    unchanged: tuple[Finding, ...]
    base: str
    errors: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()


def unchanged_since(ref: str, report: Report, gate: Gate) -> Unchanged:
    """Raises RevisionError for a commit that cannot be found or compared with."""
    with ExitStack() as until:
        base = find_base(ref, gate.targets.root, until)
        if not report.findings:
            return Unchanged((), base.name)
        tree = base.tree(gate.targets.root)
        paths = {each.span.path for each in report.findings}
        moved = _renamed(paths, base, tree, gate)
        then = {path: moved.get(path, path) for path in paths if path in base.entries or path in moved}
        remarks = [*base.remarks, *(f"{new} was {old} in {base.name}" for new, old in sorted(moved.items()))]
        if not then:
            return Unchanged((), base.name, (), tuple(remarks))
        before, errors = _judged(base, tree, sorted(set(then.values())), gate)
        remarks += [
            f"{error.path}: cannot be read in {base.name}, so all in it counts as new"
            for error in before.errors
            if error not in errors
        ]
        matcher = _Matcher(before, tree, report, gate.tree, then)
        return Unchanged(tuple(matcher.unchanged()), base.name, errors, tuple(remarks))


def _renamed(paths: Iterable[str], base: Base, tree: CommitTree, gate: Gate) -> dict[str, str]:
    new = [path for path in paths if path not in base.entries and tree.entry(path) is None]
    if not new:
        return {}
    gone = {
        path: entry.id for path, entry in base.entries.items() if entry.kind == "file" and not gate.tree.is_file(path)
    }
    return renames(new, gone, gate.tree, tree)


def _judged(base: Base, tree: CommitTree, paths: Sequence[str], gate: Gate) -> tuple[Report, tuple[Problem, ...]]:
    """The report on the files as they were, with what did not count then withheld; and errors that are the scan's own."""
    from klaudit.gate import hold  # of which this is a part

    if gate.judge is None:
        raise TypeError("a gate without a pipeline cannot look back")
    context = candidates(base, tree, gate.targets, gate.options)
    report, marked = gate.judge(tree, context, paths)
    options = replace(gate.options, baseline=None, diff_base=None)
    report = hold(report, replace(gate, tree=tree, files=paths, options=options, marked=marked))
    return report, tuple(error for error in report.errors if error.path == ".")  # the time is up


class _Matcher:
    """Findings of now against those of then, each of which answers for one.

    What is withheld now takes its counterpart first, or an old finding that has just been suppressed would let a new one pass.
    """

    def __init__(self, before: Report, tree: Tree, report: Report, now: Tree, then: dict[str, str]) -> None:
        self._report = report
        self._then = then
        self._now_tree, self._then_tree = now, tree
        known = _Versions(before)
        self._versions = _Versions(report)
        self._counted = Counter(_essence(each, each.span.path, known, tree) for each in before.findings)
        self._held = Counter(_essence(each.finding, each.finding.span.path, known, tree) for each in before.withheld)

    def unchanged(self) -> list[Finding]:
        for withheld in self._report.withheld:
            order = (self._counted, self._held) if withheld.by == "baseline" else (self._held, self._counted)
            essence = self._essence(withheld.finding)
            for left in order:
                if left[essence] > 0:
                    left[essence] -= 1
                    break
        alike: dict[Hashable, list[Finding]] = defaultdict(list)
        for finding in self._report.findings:
            alike[self._essence(finding)].append(finding)
        old: set[int] = set()
        for essence, findings in alike.items():
            count = self._counted[essence]
            if 0 < count < len(findings):
                findings.sort(key=lambda finding: not self._stood(finding))
            old.update(map(id, findings[:count]))
        return [finding for finding in self._report.findings if id(finding) in old]

    def _essence(self, finding: Finding) -> Hashable:
        path = finding.span.path
        return _essence(finding, self._then.get(path, path), self._versions, self._now_tree)

    def _stood(self, finding: Finding) -> bool:
        """Whether a line was there before, as a comparison of the two texts has it."""
        path = finding.span.path
        lines, old = _lines(self._now_tree, path), _lines(self._then_tree, self._then.get(path, path))
        if max(len(lines), len(old)) > _MOST_LINES:
            return False
        blocks = SequenceMatcher(None, old, lines, autojunk=False).get_matching_blocks()
        return any(block.b < finding.span.line <= block.b + block.size for block in blocks)


class _Versions:
    """The version that a launch was judged by: named in messages, but no value of the launch."""

    def __init__(self, report: Report) -> None:
        self._versions = {setup.span: setup.version.value for setup in report.setups}

    def without(self, finding: Finding) -> str:
        version = self._versions.get(finding.launch, "") if finding.launch is not None else ""
        return finding.message.replace(f" {version} ", " ") if version else finding.message


def _essence(finding: Finding, path: str, versions: _Versions, tree: Tree) -> Hashable:
    """What must be the same for a finding to be an old one: itself, the values in force, and the text of its lines."""
    values = tuple((each.setting, repr(each.value)) for each in finding.related)
    message = _BY_DEFAULT.sub("", _LINE_NUMBER.sub("", versions.without(finding)))
    return (path, finding.rule, finding.identity, finding.severity, message, values, _text(finding, tree))


def _text(finding: Finding, tree: Tree) -> bytes:
    """The lines of a finding; how they are spaced and ended does not matter."""
    lines = _lines(tree, finding.span.path)[finding.span.line - 1 : finding.span.end_line]
    return b" ".join(b" ".join(lines).split())


def _lines(tree: Tree, path: str) -> list[bytes]:
    try:
        source = tree.source(path)
    except (OSError, TooLargeError):
        return []
    return [] if source is None else [line.strip() for line in source.data.split(b"\n")]
