"""Drafts -> proven migrations: what fails is done otherwise where there is another way, or taken back, until the rest holds together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from klaudit.fixes.commands import Commands
from klaudit.fixes.drafts import Draft
from klaudit.fixes.edits import apply, by_path, conflict
from klaudit.fixes.migration import Migration
from klaudit.fixes.outcome import outcome
from klaudit.fixes.page import CannotEditError
from klaudit.fixes.proof import Failure, Snapshot, failures
from klaudit.fixes.rereading import Rereader
from klaudit.fixes.snapshot import Launches
from klaudit.fixes.watched import stale
from klaudit.fixes.wish import Pages
from klaudit.frameworks.resolution import Resolution
from klaudit.model import Edit, Unknown, Value
from klaudit.tree import Tree

_MOST_ROUNDS = 12


@dataclass(slots=True)
class Proven:
    """Migrations that hold together, the edited files as they were read and as they will be, and the drafts that were refused."""

    migrations: list[Migration] = field(default_factory=list)
    refused: list[tuple[Draft, str]] = field(default_factory=list)
    originals: dict[str, bytes] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)


class Prover:
    """`before` are the readings of the tree as it is, `launches` its launches in full, for those that have to be written otherwise."""

    def __init__(self, tree: Tree, launches: Launches, pages: Pages, rereader: Rereader, before: Snapshot) -> None:
        self._tree = tree
        self._launches = launches
        self._pages = pages
        self._rereader = rereader
        self._before = before
        self._drafts: list[Draft] = []
        self._proven = Proven()

    def prove(self, drafts: Sequence[Draft]) -> Proven:
        self._drafts = list(drafts)
        for _ in range(_MOST_ROUNDS):
            self._drop_conflicts()
            if not self._drafts:
                return self._proven
            after = self._rereader.all(self._contents(self._drafts))
            wrong = self._failures(self._drafts, after)
            if not wrong:
                for migration in (each.migration() for each in self._drafts):
                    resolved = after[migration.path].launches[migration.at].setup
                    self._proven.migrations.append(replace(migration, after=outcome(migration, resolved)))
                self._proven.contents = self._contents(self._drafts)
                self._proven.originals = {path: self._data(path) for path in self._proven.contents}
                return self._proven
            self._mend(wrong)
        self._drop({id(each): "the edits of several launches could not be proven together" for each in self._drafts})
        return self._proven

    def _failures(self, drafts: Sequence[Draft], after: Snapshot) -> list[Failure]:
        said = {place: names for each in drafts for place, names in each.guarded.items()}
        return failures(self._before, after, [each.migration() for each in drafts], said)

    def _contents(self, drafts: Iterable[Draft]) -> dict[str, bytes]:
        edits = [edit for each in drafts for edit in (*each.edits, *each.guards)]
        return {path: apply(self._data(path), group) for path, group in by_path(edits).items()}

    def _data(self, path: str) -> bytes:
        source = self._tree.source(path)
        return source.data if source is not None else b""

    # --- what fails -------------------------------------------------------------------------------------------------------------------

    def _drop_conflicts(self) -> None:
        """Launches that want different texts in one place cannot both have theirs."""
        kept: dict[str, list[Edit]] = {}
        refused: set[Edit] = set()
        for draft in self._drafts:
            for edit in (*draft.edits, *draft.guards):
                clash = conflict((*kept.get(edit.path, ()), edit))
                if clash is None:
                    kept.setdefault(edit.path, []).append(edit)
                else:
                    refused |= set(clash)
        why = "launches that share its text need other values there"
        self._drop({id(each): why for each in self._drafts if refused & {*each.edits, *each.guards}})

    def _mend(self, wrong: Sequence[Failure]) -> None:
        """Drafts that fail are taken back, those that make another launch fail are done otherwise or taken back."""
        by_place = {(each.path, each.at): each for each in self._drafts}
        reasons: dict[int, str] = {}
        strangers: list[Failure] = []
        for failure in wrong:
            draft = by_place.get((failure.path, failure.at))
            if draft is None:
                strangers.append(failure)
            else:
                reasons[id(draft)] = failure.why
        failing = {edit for each in self._drafts if id(each) in reasons for edit in each.edits}
        for group in self._groups() if strangers else ():
            near = [each for each in strangers if self._reaches(group, each)]
            if near and not any(id(each) in reasons for each in group):
                reasons |= self._spare(group, near)
        for each in self._drafts:
            if id(each) not in reasons and failing & set(each.edits):
                reasons[id(each)] = "a launch that shares its text cannot be changed"
        if not reasons and not any(each.is_overruling or each.guards for each in self._drafts):
            why = f"another launch would change: {wrong[0].path}: {wrong[0].why}"  # no group alone is to blame
            reasons = {id(each): why for each in self._drafts}
            for each in self._drafts:
                each.mentions = (wrong[0].path,)
        self._drop(reasons)

    def _reaches(self, group: Sequence[Draft], failure: Failure) -> bool:
        """Whether the launch that fails may draw on what a group edits."""
        edited = {edit.path for each in group for edit in (*each.edits, *each.guards)}
        return failure.path in stale(edited, self._rereader.drawn_on())

    def _spare(self, group: Sequence[Draft], strangers: Sequence[Failure]) -> dict[int, str]:
        """Other launches that the edits of a group would change keep what they have; else the reasons to refuse the group."""
        paths = {each.path for each in strangers} | {each.path for each in group}
        still = self._failures(group, self._rereader.some(self._contents(group), paths))
        mine = {(each.path, each.at) for each in group}
        hurt = [failure for failure in still if (failure.path, failure.at) not in mine]
        if not hurt:
            return {}
        reasons: dict[int, str] = {}
        is_own = all(any(self._is_same_command(each, failure) for each in group) for failure in hurt)
        for draft in group:
            why = f"{self._told(hurt[0])} shares its text, and there {hurt[0].why}"
            draft.mentions = (hurt[0].path, draft.path)
            try:
                if is_own:
                    self._guard(draft, hurt, why)
                else:
                    draft.overrule(self._launches.of(draft.path, draft.at), self._pages, why)
            except CannotEditError as error:
                reasons[id(draft)] = why if str(error) == why else f"{why}; {error}"
        return reasons

    def _guard(self, draft: Draft, hurt: Sequence[Failure], why: str) -> None:
        """Where the same command runs otherwise under a condition: settings beside the words of that condition keep it as it is."""
        if draft.guards:
            raise CannotEditError(why)
        others = [self._launches.of(failure.path, failure.at) for failure in hurt]
        mine = {word.span for word in self._launches.of(draft.path, draft.at).launch.words}
        theirs = [{word.span for word in other.launch.words} - mine for other in others]
        common = theirs[0].intersection(*theirs[1:])  # the words of the condition itself, whatever else it comes with
        guards: list[Edit] = []
        for failure, other, own in zip(hurt, others, theirs, strict=True):
            kept = _kept(draft, other)
            guards += Commands(self._pages, other).guard(kept, common or own)
            draft.guarded[failure.path, failure.at] = frozenset(kept)
        draft.guards = list(dict.fromkeys(guards))
        draft.notes = (
            *draft.notes,
            f"{self._told(hurt[0])} keeps its settings, which cannot become those of this migration",
        )

    def _is_same_command(self, draft: Draft, failure: Failure) -> bool:
        if failure.at < 0 or failure.path != draft.path:
            return False
        return self._before[failure.path].launches[failure.at].setup.span == draft.setup.span

    def _told(self, failure: Failure) -> str:
        """Which launch: `run.sh:12, if $STEP_WISE = true,`."""
        if failure.at < 0:
            return failure.path
        setup = self._before[failure.path].launches[failure.at].setup
        place = f"{failure.path}:{setup.span.line}"
        return f"{place}, if {' and '.join(setup.assumes)}," if setup.assumes else place

    def _groups(self) -> list[list[Draft]]:
        """Drafts that share edits, together."""
        groups: list[tuple[set[Edit], list[Draft]]] = []
        for draft in self._drafts:
            edits = set(draft.edits)
            joined = [group for group in groups if group[0] & edits]
            groups = [group for group in groups if not group[0] & edits]
            members = [each for _, group in joined for each in group]
            groups.append((edits.union(*(found for found, _ in joined)), [*members, draft]))
        return [members for _, members in groups]

    def _drop(self, reasons: Mapping[int, str]) -> None:
        self._proven.refused += [(each, reasons[id(each)]) for each in self._drafts if id(each) in reasons]
        self._drafts = [each for each in self._drafts if id(each) not in reasons]


def _kept(draft: Draft, other: Resolution) -> dict[str, Value]:
    """The settings of another launch that the wish of a draft would change.  Raises CannotEditError for what is unknown."""
    values: dict[str, Value] = {}
    wanted = {entry.name: entry.value for entry in draft.wish.write}
    specs = other.launch.trainer.settings
    for name in sorted(draft.names):
        setting = other.launch.configuration.get(name)
        id = next((id for id, spec in specs.items() if any(each.name == name for each in spec.names)), None)
        value = setting.value if setting is not None else other[id].value if id is not None else None
        if isinstance(value, Unknown):
            raise CannotEditError(f"{name} is not known there")
        if name not in wanted or wanted[name] != value:
            values[name] = value
    return values
