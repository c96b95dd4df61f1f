"""A tree -> the plan of its migrations: every launch with a finding gets its edits, and all of them together are proven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from klaudit.configuration import Options
from klaudit.discover import list_files, locate
from klaudit.findings.judging import Subject, judge
from klaudit.findings.selection import Selection
from klaudit.fixes.choice import alternatives, choose
from klaudit.fixes.drafts import Draft, write_together
from klaudit.fixes.edits import apply, by_path, conflict
from klaudit.fixes.migration import Migration, Plan, Request, Unchanged
from klaudit.fixes.proof import Failure, failures, snapshot
from klaudit.fixes.snapshot import READING, Trained, problem_of, resolutions, trained
from klaudit.fixes.wish import Pages
from klaudit.frameworks.migrate import Impossible
from klaudit.frameworks.resolve import Resolution
from klaudit.model import Edit, Finding, Setup
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
_MOST_ROUNDS = 12  # of taking back what cannot be proven


def plan(paths: Sequence[str], options: Options, request: Request, progress: Progress | None = None) -> Plan:
    """The migrations of all launches below `paths` that have a selected finding.

    Nothing is written.  Raises RulesError where the framework rules themselves are broken.
    """
    targets = locate(paths, options)
    found = list_files(targets, options)
    tree = Tree(targets.root, dict(targets.overlay))
    planner = _Planner(tree, found.files, options, request)
    planner.plan.problems += [*targets.problems, *found.problems]
    planner.look(found.files, progress)
    planner.write()
    planner.prove()
    return planner.plan


class _Planner:
    def __init__(self, tree: Tree, files: Sequence[str], options: Options, request: Request) -> None:
        self.plan = Plan(root=tree.root)
        self._tree = tree
        self._files = files
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
            except READING as error:
                self.plan.problems.append(problem_of(path, error))
                self._before.pop(path, None)
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
        """Edits for all of them."""
        write_together(self._drafts, self._pages)
        for draft in self._drafts:
            if draft.why:
                self.plan.unchanged.append(Unchanged(draft.resolution.setup, draft.rules, draft.why, draft.instead))
            else:
                self.plan.migrations.append(draft.migration())
        self._drafts.clear()

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

    # --- proof ------------------------------------------------------------------------------------------------------------------------

    def prove(self) -> None:
        """Takes back what conflicts or cannot be proven, until the rest holds together."""
        self._drop_conflicts()
        for _ in range(_MOST_ROUNDS):
            if not self.plan.migrations:
                return
            after, wrong = self._try(self.plan.migrations)
            if not wrong:
                self.plan.migrations = [
                    replace(each, after=after[each.path][each.at].setup) for each in self.plan.migrations
                ]
                self._keep_contents()
                return
            self._drop_culprits(wrong)
        self._drop(lambda each: "the edits of several launches could not be proven together")

    def _try(
        self, migrations: Sequence[Migration], paths: Iterable[str] | None = None
    ) -> tuple[dict[str, list[Trained]], list[Failure]]:
        """The tree with these edits, read again (all of it, or `paths`), and what is wrong with it."""
        contents = self._contents(migrations)
        tree = Tree(self._tree.root, contents)
        scanner = Scanner(tree, self._files, self._options)
        before = self._before if paths is None else {path: self._before[path] for path in paths}
        after = snapshot(scanner, before)
        return after, failures(before, after, migrations)

    def _contents(self, migrations: Iterable[Migration]) -> dict[str, bytes]:
        edits = [edit for each in migrations for edit in each.edits]
        return {path: apply(self._data(path), group) for path, group in by_path(edits).items()}

    def _data(self, path: str) -> bytes:
        source = self._tree.source(path)
        return source.data if source is not None else b""

    def _keep_contents(self) -> None:
        self.plan.contents = self._contents(self.plan.migrations)
        self.plan.originals = {path: self._data(path) for path in self.plan.contents}

    def _drop_conflicts(self) -> None:
        """Launches that want different texts in one place cannot both have theirs."""
        kept: list[Edit] = []
        refused: set[Edit] = set()
        for migration in self.plan.migrations:
            for edit in migration.edits:
                clash = conflict((*[each for each in kept if each.path == edit.path], edit))
                if clash is None:
                    kept.append(edit)
                else:
                    refused |= set(clash)
        if refused:
            self._drop(
                lambda each: "launches that share its text need other values there" if refused & set(each.edits) else ""
            )

    def _drop_culprits(self, wrong: Sequence[Failure]) -> None:
        """Takes back the migrations that fail, and those whose edits make another launch fail."""
        reasons: dict[tuple[str, int], str] = {}
        by_place = {(each.path, each.at): each for each in self.plan.migrations}
        strangers: list[Failure] = []
        for failure in wrong:
            if (failure.path, failure.at) in by_place:
                reasons[failure.path, failure.at] = failure.why
            else:
                strangers.append(failure)
        failing_edits = {edit for place in reasons for edit in by_place[place].edits}
        for group in self._groups() if strangers else ():
            if any((each.path, each.at) in reasons for each in group):
                continue
            _, still = self._try(group, {each.path for each in strangers} | {each.path for each in group})
            for failure in still:
                if (failure.path, failure.at) not in by_place:
                    setup = self._before[failure.path][failure.at].setup if failure.at >= 0 else None
                    why = f"it shares its text with another launch: {_told(failure.path, setup)}: {failure.why}"
                    reasons.update(((each.path, each.at), why) for each in group)
        if not reasons:  # no group alone is to blame
            self._drop(lambda each: f"another launch would change: {wrong[0].path}: {wrong[0].why}")
            return
        self._drop(
            lambda each: (
                reasons.get((each.path, each.at))
                or ("a launch that shares its text cannot be changed" if failing_edits & set(each.edits) else "")
            )
        )

    def _groups(self) -> list[list[Migration]]:
        """Migrations that share edits, together."""
        groups: list[tuple[set[Edit], list[Migration]]] = []
        for migration in self.plan.migrations:
            edits = set(migration.edits)
            joined = [group for group in groups if group[0] & edits]
            groups = [group for group in groups if not group[0] & edits]
            members = [each for _, group in joined for each in group]
            groups.append((edits.union(*(found for found, _ in joined)), [*members, migration]))
        return [members for _, members in groups]

    def _drop(self, why: Callable[[Migration], str]) -> None:
        kept = []
        for migration in self.plan.migrations:
            reason = why(migration)
            if reason:
                self.plan.unchanged.append(Unchanged(migration.before, migration.rules, reason))
            else:
                kept.append(migration)
        self.plan.migrations = kept


def _told(path: str, setup: Setup | None) -> str:
    """Which launch: `run.sh:12, if $STEP_WISE = true`."""
    if setup is None:
        return path
    place = f"{path}:{setup.span.line}"
    return f"{place}, if {' and '.join(setup.assumes)}" if setup.assumes else place
