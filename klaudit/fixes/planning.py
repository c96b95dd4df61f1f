"""A tree -> the plan of its migrations: every launch with a finding gets its edits, and all of them together are proven."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace

from klaudit.configuration import Options
from klaudit.discover import discover, list_files, locate
from klaudit.fixes.choice import check_choice
from klaudit.fixes.codemods.files import rewrite_files
from klaudit.fixes.context import in_context
from klaudit.fixes.drafting import Drafter, Looked
from klaudit.fixes.drafts import Draft, write_together
from klaudit.fixes.migration import Plan, Request, Unchanged
from klaudit.fixes.pool import spread, without_gc
from klaudit.fixes.proving import Prover
from klaudit.fixes.rereading import Reading, Rereader, reading
from klaudit.fixes.snapshot import Launches, problem_of
from klaudit.fixes.watched import WatchedTree
from klaudit.fixes.wish import Pages
from klaudit.fixes.wrapped import left_alone
from klaudit.frameworks.load import load_frameworks
from klaudit.model import Problem
from klaudit.scanner import Scanner

Progress = Callable[[int, int], None]


def plan(
    paths: Sequence[str],
    options: Options,
    request: Request,
    progress: Progress | None = None,
    *,
    whole_repository: bool = False,
) -> Plan:
    """The migrations of all launches below `paths` that have a selected finding.

    With `whole_repository` a folder is seen as a part of its repository, which is then the root of the plan.  Nothing is written.
    Raises RulesError where the framework rules themselves are broken, and RequestError.
    """
    with without_gc():
        check_choice(request, load_frameworks(options.rules))
        targets = locate(paths, options)
        if whole_repository:
            targets = in_context(targets)
        found = list_files(targets, options)
        tree = WatchedTree(targets.root, dict(targets.overlay))
        planner = _Planner(tree, found.files, options, request)
        planner.plan.problems += [*targets.problems, *found.problems]
        planner.look(found.files, progress)
        if targets.folders != (".",):
            planner.look_further()
        planner.write()
        rewrite_files(planner.plan, tree, found.files, options, request)
        return planner.plan


class _Planner:
    def __init__(self, tree: WatchedTree, files: Sequence[str], options: Options, request: Request) -> None:
        self.plan = Plan(root=tree.root)
        self._tree = tree
        self._options = options
        self._request = request
        self._scanner = Scanner(tree, files, options)
        self._pages = Pages(tree)
        self._drafter = Drafter(self._scanner, tree, self._pages, options, request)
        self._before: dict[str, Reading] = {}
        self._asked: dict[str, frozenset[str]] = {}  # the files drawn on to tell whether one may hold settings
        self._drafts: list[Draft] = []
        self._looked_at: tuple[str, ...] = ()

    def look(self, files: Sequence[str], progress: Progress | None) -> None:
        """What each launch needs."""
        hits = [(path, size) for path in files if (size := self._size(path)) is not None]
        self._looked_at = tuple(path for path, _ in hits)
        looked: dict[str, Looked | Problem] = {}
        for path, seen in spread(self._look_at, hits, self._options.jobs):
            looked[path] = seen
            if progress is not None:
                progress(len(looked), len(hits))
        for path, _ in hits:
            match looked[path]:
                case Looked() as found:
                    self._before[path] = replace(found.reading, drawn_on=found.reading.drawn_on | self._asked[path])
                    self._drafts += found.drafts
                    self.plan.unchanged += found.unchanged
                case Problem() as problem:
                    self.plan.problems.append(problem)

    def look_further(self) -> None:
        """Where only some files of the tree were named, launches of the others that may share what is edited have a say too."""
        edited = {edit.path for draft in self._drafts for edit in draft.edits}
        stems = {os.fsencode(posixpath.splitext(posixpath.basename(path))[0]) for path in edited}
        for path in discover(self._tree.root, self._options) if stems else ():
            if path in self._before:
                continue
            try:
                source = self._tree.source(path)
            except Exception:  # it was not asked for, and cannot be shown to change
                continue
            if source is not None and any(stem in source.data for stem in stems):
                self._before[path] = reading(self._scanner, self._tree, path)
            else:
                self._tree.forget(path)

    def write(self) -> None:
        """Edits for all of them, as far as they can be proven."""
        launches = Launches(self._scanner)
        write_together(self._drafts, launches, self._pages)
        self.plan.unchanged += [_refused(draft, draft.why) for draft in self._drafts if draft.why]
        rereader = Rereader(self._tree.root, self._scanner, self._before, self._options.jobs)
        prover = Prover(self._tree, launches, self._pages, rereader, self._before)
        proven = prover.prove([draft for draft in self._drafts if not draft.why])
        self.plan.migrations = proven.migrations
        self.plan.unchanged += [_refused(draft, why) for draft, why in proven.refused]
        self.plan.contents = proven.contents
        self.plan.originals = proven.originals
        edited = self._scanner.over(WatchedTree(self._tree.root, dict(proven.contents)))
        self.plan.unchanged += left_alone(edited, self._looked_at, self._drafter.rules_of, self._request)

    def _size(self, path: str) -> int | None:
        """How large a file is that may hold settings; None for one that holds none, or cannot be read."""
        try:
            self._tree.start()
            source = self._tree.source(path)
            if source is not None and (not self._options.prefilter or self._scanner.may_set(path, source.data)):
                self._asked[path] = self._tree.drawn_on(path)
                return len(source.data)
            self._tree.forget(path)
        except Exception as error:  # nothing that stands in one file may keep the others from being fixed
            self.plan.problems.append(problem_of(path, error))
        return None

    def _look_at(self, path: str) -> Looked | Problem:
        try:
            return self._drafter.look(path)
        except Exception as error:
            return problem_of(path, error)


def _refused(draft: Draft, why: str) -> Unchanged:
    return Unchanged(draft.setup, draft.rules, why, draft.instead, draft.mentions)
