"""The code of a tree -> its part of the plan: every file with a finding on a formula, rewritten as far as that is proven."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Sequence

from klaudit.code.screen import is_test
from klaudit.code.screen import may_matter as may_hold_formulas
from klaudit.configuration import Options
from klaudit.findings.selection import Selection
from klaudit.fixes.codemods.planning import Rewritten, rewrite
from klaudit.fixes.codemods.proof import Load, judged
from klaudit.fixes.migration import Plan, Request, Unchanged
from klaudit.fixes.pool import spread
from klaudit.fixes.snapshot import problem_of
from klaudit.gate.excuses import Excuses
from klaudit.model import Finding, Problem
from klaudit.readers.source import Source
from klaudit.tree import Tree

_SUFFIXES = (".py", ".ipynb")
_MOST_NEIGHBOURS = 40  # files that import the edited one and are read again


def rewrite_files(plan: Plan, tree: Tree, files: Sequence[str], options: Options, request: Request) -> None:
    """Adds to a plan whose settings are done: migrations and reasons, and the contents of rewritten files."""
    rewriter = _Rewriter(tree, files, options, request)
    hits = [(path, len(source.data)) for path in files if (source := rewriter.candidate(path)) is not None]
    made = dict(spread(rewriter.look, hits, options.jobs))
    for path, _ in hits:
        match made[path]:
            case Problem() as problem if problem not in plan.problems:
                plan.problems.append(problem)
            case Rewritten() as found:
                _add(plan, path, found, tree)


def _add(plan: Plan, path: str, found: Rewritten, tree: Tree) -> None:
    plan.unchanged += found.unchanged
    source = tree.source(path)
    if found.content is None or source is None:
        return
    if path in plan.contents:
        why = "settings in the same file are changed first: run the fix a second time"
        plan.unchanged += [Unchanged(each.before, each.rules, why, (each.title,)) for each in found.migrations]
        return
    plan.migrations += found.migrations
    plan.originals[path] = source.data
    plan.contents[path] = found.content


class _Rewriter:
    def __init__(self, tree: Tree, files: Sequence[str], options: Options, request: Request) -> None:
        self._tree = tree
        self._files = files
        self._options = options
        self._request = request
        self._selection = Selection(options, tree.root)
        self._excuses = Excuses(tree, options)

    def candidate(self, path: str) -> Source | None:
        """The file, where it may hold a formula."""
        if not path.endswith(_SUFFIXES) or is_test(path):
            return None
        source = self._tree.readable(path)
        return source if source is not None and may_hold_formulas(source.data) else None

    def look(self, path: str) -> Rewritten | Problem:
        """Never raises for what stands in the file."""
        try:
            source = self._tree.source(path)
            if source is None:
                return Rewritten()
            found = rewrite(source, self._tree.readable, self._request, self._is_selected, self._excuses.in_text)
            why = "" if found.content is None else self._hurts(path, found.content)
            if why:
                found = Rewritten(
                    [], [*found.unchanged, *(Unchanged(m.before, m.rules, why) for m in found.migrations)]
                )
            return found
        except Exception as error:  # nothing that stands in one file may keep the others from being fixed
            return problem_of(path, error)

    def _hurts(self, path: str, content: bytes) -> str:
        """Which finding a file that draws on this one would get; empty where none would."""
        stem = os.fsencode(posixpath.splitext(posixpath.basename(path))[0])

        def edited(other: str) -> Source | None:
            return Source(path, content) if posixpath.normpath(other) == path else self._tree.readable(other)

        near = [each for each in self._files if each != path and each.endswith(".py") and self._draws_on(each, stem)]
        for other in near[:_MOST_NEIGHBOURS]:
            source = self._tree.readable(other)
            if source is None:
                continue
            try:
                before, after = _rules(source, self._tree.readable), _rules(source, edited)
            except ValueError:  # it cannot be read, with or without the edit
                continue
            for rule, number in after.items():
                if number > before[rule]:
                    return f"{rule} would be found in {other}, which draws on this file"
        return ""

    def _draws_on(self, path: str, stem: bytes) -> bool:
        source = self.candidate(path)
        return source is not None and stem in source.data

    def _is_selected(self, finding: Finding) -> bool:
        return (finding.severity != "note" or bool(self._options.select)) and self._selection.keeps(finding)


def _rules(source: Source, load: Load) -> Counter[str]:
    return Counter(finding.rule for finding in judged(source, load).findings)
