"""A tree -> the plan of its migrations: every launch with a finding gets its edits, and all of them together are proven."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from klaudit.configuration import Options
from klaudit.discover import discover, list_context, list_files, locate
from klaudit.findings.judging import Subject, judge
from klaudit.findings.selection import Selection
from klaudit.fixes.choice import alternatives, choose
from klaudit.fixes.drafts import Draft, write_together
from klaudit.fixes.migration import Plan, Request, Unchanged
from klaudit.fixes.proving import Prover
from klaudit.fixes.snapshot import Trained, problem_of, resolutions, trained
from klaudit.fixes.wish import Pages
from klaudit.frameworks.migrate import Impossible
from klaudit.frameworks.resolve import Resolution
from klaudit.model import Finding
from klaudit.scanner import Scanner
from klaudit.tree import Tree

Progress = Callable[[int, int], None]

# Findings that say of a set-up that it descends something else; the others are not mended by another placement or estimator.
_MENDED = frozenset(
    {
        "k3-in-loss",
        "k3-in-reward",
        "k1-in-loss",
        "biased-reward-estimator",
        "biased-loss-estimator",
        "std-normalised-penalty",
        "ignored-penalty",
        "token-level-only",
    }
)


def plan(paths: Sequence[str], options: Options, request: Request, progress: Progress | None = None) -> Plan:
    """The migrations of all launches below `paths` that have a selected finding.

    Nothing is written.  Raises RulesError where the framework rules themselves are broken.
    """
    targets = locate(paths, options)
    found = list_files(targets, options)
    tree = Tree(targets.root, dict(targets.overlay))
    context = list_context(targets, found, options)
    planner = _Planner(tree, context, options, request, is_part=targets.folders != (".",))
    planner.plan.problems += [*targets.problems, *found.problems]
    planner.look(found.files, progress)
    planner.write()
    return planner.plan


class _Planner:
    def __init__(
        self, tree: Tree, files: Sequence[str], options: Options, request: Request, *, is_part: bool = False
    ) -> None:
        self.plan = Plan(root=tree.root)
        self._tree = tree
        self._files = files
        self._is_part = is_part
        self._options = options
        self._request = request
        self._scanner = Scanner(tree, files, options)
        self._selection = Selection(options, tree.root)
        self._pages = Pages(tree)
        self._before: dict[str, list[Trained]] = {}
        self._drafts: list[Draft] = []

    # --- what each launch needs ----------------------------------------------------------------------------------------------------

    def look(self, files: Sequence[str], progress: Progress | None) -> None:
        for done, path in enumerate(files, 1):
            try:
                source = self._tree.source(path)
                if source is None or (self._options.prefilter and not self._scanner.may_matter(path, source.data)):
                    self._tree.forget(path)
                    continue
                self._before[path] = [
                    self._launch(path, at, resolution) for at, resolution in enumerate(resolutions(self._scanner, path))
                ]
            except Exception as error:  # nothing that stands in one file may keep the others from being fixed
                self.plan.problems.append(problem_of(path, error))
                self._before.pop(path, None)
                self._drafts = [draft for draft in self._drafts if draft.path != path]
            if progress is not None:
                progress(done, len(files))

    def _launch(self, path: str, at: int, resolution: Resolution) -> Trained:
        rules = self._mended(resolution)
        if rules:
            draft = self._draft(path, at, resolution, rules)
            if isinstance(draft, Draft):
                self._drafts.append(draft)
            else:
                self.plan.unchanged.append(draft)
        return trained(resolution)

    def write(self) -> None:
        """Edits for all of them, as far as they can be proven."""
        write_together(self._drafts, self._pages)
        self.plan.unchanged += [_refused(draft, draft.why) for draft in self._drafts if draft.why]
        self._look_further()
        prover = Prover(self._scanner, self._files, self._options, self._before, self._pages)
        proven = prover.prove([draft for draft in self._drafts if not draft.why])
        self.plan.migrations = proven.migrations
        self.plan.unchanged += [_refused(draft, why) for draft, why in proven.refused]
        self.plan.contents = proven.contents
        self.plan.originals = proven.originals

    def _look_further(self) -> None:
        """Where only some files of the tree were named, launches of the others that may share what is edited have a say too."""
        edited = {edit.path for draft in self._drafts for edit in draft.edits}
        stems = {posixpath.splitext(posixpath.basename(path))[0].encode() for path in edited}
        for path in discover(self._tree.root, self._options) if stems and self._is_part else ():
            if path in self._before:
                continue
            try:
                source = self._tree.source(path)
                if source is None or not any(stem in source.data for stem in stems):
                    self._tree.forget(path)
                else:
                    self._before[path] = [trained(resolution) for resolution in resolutions(self._scanner, path)]
            except Exception:  # it was not asked for, and cannot be shown to change
                continue

    def _mended(self, resolution: Resolution) -> tuple[str, ...]:
        """The selected findings of a launch that another set-up mends; notes only where the user selects."""
        found = [finding for finding in judge(Subject(resolution)) if finding.name in _MENDED]
        return tuple(dict.fromkeys(finding.rule for finding in found if self._is_selected(finding)))

    def _is_selected(self, finding: Finding) -> bool:
        return (finding.severity != "note" or bool(self._options.select)) and self._selection.keeps(finding)

    def _draft(self, path: str, at: int, resolution: Resolution, rules: tuple[str, ...]) -> Draft | Unchanged:
        request = self._request
        change = choose(resolution, request)
        instead = tuple(alternatives(resolution, request))
        if isinstance(change, Impossible):
            return Unchanged(resolution.setup, rules, change.why, instead)
        if change.recipe.safety == "unsafe" and not request.unsafe:
            return Unchanged(resolution.setup, rules, "the change is not safe: --unsafe makes it", instead)
        return Draft(path, at, resolution, rules, change, instead)


def _refused(draft: Draft, why: str) -> Unchanged:
    return Unchanged(draft.resolution.setup, draft.rules, why, draft.instead)
