"""What was there before: today's findings against those of an earlier commit, found by judging the same files as they were.

Comparing findings and not lines has a changed default, base configuration, sourced script or pinned version count where it changes what
a launch trains with, whatever file it stands in; and nothing count that merely has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from msgspec import Struct
from msgspec.structs import replace

from klaudit.gate.base import Base, candidates, find_base, looked_at
from klaudit.gate.commit_tree import CommitTree
from klaudit.gate.essence import Essences
from klaudit.gate.own_rules import told_of_own_rules
from klaudit.gate.remarks import few
from klaudit.gate.renames import renames
from klaudit.gate.step import Gate
from klaudit.model import Finding, Problem, Report
from klaudit.tree import Tree


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
        told = told_of_own_rules(base, gate)
        if not report.findings:
            return Unchanged((), base.name, (), tuple(told))
        tree = base.tree(gate.targets.root)
        paths = {each.span.path for each in report.findings}
        moved = _renamed(paths, base, tree, gate)
        then = {path: moved.get(path, path) for path in paths if path in base.entries or path in moved}
        renamed = [f"{new} was {old} in {base.name}" for new, old in sorted(moved.items())]
        remarks = [*told, *few(base.remarks, "nested repositories"), *few(renamed, "renamed files")]
        if not then:
            return Unchanged((), base.name, (), tuple(remarks))
        before, errors = _judged(base, tree, sorted(set(then.values())), gate)
        unread = [error.path for error in before.errors if error not in errors]
        remarks += few(
            [f"{path}: cannot be read in {base.name}, so all in it counts as new" for path in unread], "files"
        )
        matcher = _Matcher(before, tree, report, gate.tree, then)
        return Unchanged(tuple(matcher.unchanged()), base.name, errors, tuple(remarks))


def _renamed(paths: Iterable[str], base: Base, tree: CommitTree, gate: Gate) -> dict[str, str]:
    new = [path for path in paths if path not in base.entries and tree.entry(path) is None]
    if not new:
        return {}
    missing = [path for path in base.entries if not gate.tree.is_file(path)]
    # what was passed over then was found in nothing: from there it comes as new
    gone = {path: base.entries[path].id for path in looked_at(missing, base, tree, gate.options)}
    return renames(new, gone, gate.tree, tree)


def _judged(base: Base, tree: CommitTree, paths: Sequence[str], gate: Gate) -> tuple[Report, tuple[Problem, ...]]:
    """The report on the files as they were, with what did not count then withheld; and errors that are the scan's own."""
    from klaudit.gate import hold  # of which this is a part

    if gate.judge is None:
        raise TypeError("a gate without a pipeline cannot look back")
    context = candidates(base, tree, gate.targets, gate.options, gate.files)
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
        self._old, self._new = Essences(before, tree, {}), Essences(report, now, then)
        self._changed: dict[str, range] = {}  # by path: the lines from the first to the last that differ
        held = [each.finding for each in before.withheld]
        self._counted = Counter(map(self._old.of, before.findings))
        self._held = Counter(map(self._old.of, held))
        self._kinds = Counter(map(self._old.kind, [*before.findings, *held]))

    def unchanged(self) -> list[Finding]:
        for withheld in self._report.withheld:
            self._kinds[self._new.kind(withheld.finding)] -= 1
            order = (self._counted, self._held) if withheld.by == "baseline" else (self._held, self._counted)
            essence = self._new.of(withheld.finding)
            for left in order:
                if left[essence] > 0:
                    left[essence] -= 1
                    break
        old: set[int] = set()
        for finding in sorted(self._report.findings, key=self._may_be_new):
            essence, kind = self._new.of(finding), self._new.kind(finding)
            if self._counted[essence] > 0 and self._kinds[kind] > 0:
                self._counted[essence] -= 1
                self._kinds[kind] -= 1
                old.add(id(finding))
        return [finding for finding in self._report.findings if id(finding) in old]

    def _may_be_new(self, finding: Finding) -> bool:
        """Whether its line lies neither above nor below all that was changed in the file; of several alike it is the likelier new one."""
        path = finding.span.path
        if path not in self._changed:
            lines, old = self._new.lines(path), self._old.lines(self._then.get(path, path))
            above = _shared(lines, old)
            below = _shared(lines[above:][::-1], old[above:][::-1])
            self._changed[path] = range(above + 1, len(lines) - below + 1)
        return finding.span.line in self._changed[path]


def _shared(lines: Sequence[bytes], others: Sequence[bytes]) -> int:
    """How many lines from the first on are the same."""
    count = 0
    for line, other in zip(lines, others, strict=False):
        if line != other:
            break
        count += 1
    return count
