"""Launches on their way to a migration: those that share words of a script are changed together, each word once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from klaudit.findings.wording import change_text
from klaudit.fixes.commands import Commands
from klaudit.fixes.migration import Migration
from klaudit.fixes.page import CannotEditError
from klaudit.fixes.rewrite import edits_of
from klaudit.fixes.snapshot import Launches
from klaudit.fixes.wish import Entry, Pages, Wish, wish
from klaudit.frameworks.migrate import Change
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.rules import CodeChange
from klaudit.model import Edit, Setup
from klaudit.readers.source import UnreadableError


@dataclass(slots=True)
class Draft:
    """A launch and what it needs.  `why` says why it gets no edits.

    It holds no Resolution, which is large and knows its whole tree: drafts are made in one process and proven in another.
    """

    path: str
    at: int
    setup: Setup
    rules: tuple[str, ...]
    change: Change
    title: str
    instead: tuple[str, ...]
    wish: Wish
    config_files: tuple[str, ...]  # those that set something of this launch
    edits: list[Edit] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    why: str = ""
    mentions: tuple[str, ...] = ()  # files that `notes` and reasons name
    is_overruling: bool = False
    guards: list[Edit] = field(default_factory=list)
    guarded: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)  # settings the guards say, by launch

    @classmethod
    def of(
        cls,
        path: str,
        at: int,
        resolution: Resolution,
        rules: tuple[str, ...],
        change: Change,
        instead: tuple[str, ...],
    ) -> Draft:
        title = "; ".join(filter(None, (_code_text(change.recipe.code), change_text(change, resolution))))
        wanted = wish(change, resolution)
        return cls(path, at, resolution.setup, rules, change, title, instead, wanted, _config_files(resolution))

    def write(self, resolution: Resolution, pages: Pages, files: Mapping[str, Draft]) -> None:
        """Makes the edits.  What a config file will set anyway, because it is changed as a set-up of its own, needs none here."""
        base = next((files[path] for path in self.config_files if path in files), None)
        left = self.wish if base is None or base is self else self._without(base.wish, resolution)
        try:
            self.edits, notes = edits_of(left, resolution, pages, self.change.recipe.code)
            self.notes = tuple(dict.fromkeys((*self.notes, *notes)))
            if base is not None and left is not self.wish:
                self.edits = [*self.edits, *base.edits]
        except (CannotEditError, UnreadableError, UnicodeError) as error:
            self.edits, self.why = [], str(error)

    def overrule(self, resolution: Resolution, pages: Pages, why: str) -> None:
        """Leaves in peace what other launches share, and writes over it in the command.  Raises CannotEditError."""
        if self.is_overruling or resolution.launch.kind != "launch":
            raise CannotEditError(why)
        self.edits = Commands(pages, resolution).overrule(self.wish)
        self.is_overruling = True
        self.notes = (*self.notes, f"set in the command itself: {why}")

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*(entry.name for entry in self.wish.write), *self.wish.remove))

    def _without(self, other: Wish, resolution: Resolution) -> Wish:
        """The wish without what the config file below will hold and nothing above it overrules."""
        given = resolution.launch.configuration.given
        promised = {entry.name: entry.value for entry in other.write}
        left = tuple(
            entry
            for entry in self.wish.write
            if promised.get(entry.name) != entry.value or any(each.origin != "file" for each in given(entry.name))
        )
        return self.wish if left == self.wish.write else Wish(left, self.wish.remove)

    def migration(self) -> Migration:
        change = self.change
        return Migration(
            path=self.path,
            at=self.at,
            before=self.setup,
            rules=self.rules,
            target=change.recipe.target,
            title=self.title,
            explanation=change.explanation,
            rescued=change.rescued_from_std,
            safety=change.recipe.safety,
            edits=(*self.edits, *self.guards),
            names=self.names,
            amount=change.amount,
            notes=self.notes,
            code=change.recipe.code,
            mentions=self.mentions,
        )


def write_together(drafts: Sequence[Draft], launches: Launches, pages: Pages) -> None:
    """Fits the edits of drafts, each made for itself, to one another: launches that touch the same words get all that any needs."""
    files = {draft.path: draft for draft in drafts if draft.setup.kind == "config"}
    for draft in sorted(drafts, key=lambda draft: draft.setup.kind != "config"):  # launches build on files
        if any(path in files for path in draft.config_files if path != draft.path):
            draft.write(launches.of(draft.path, draft.at), pages, files)
    for group in _sharing(drafts):
        wishes = [each.wish for each in group]
        if any(each != wishes[0] for each in wishes):
            united = _united(wishes)
            for draft in group:
                draft.wish = united
                draft.write(launches.of(draft.path, draft.at), pages, files)


def _code_text(code: CodeChange | None) -> str:
    """`GRPOConfig becomes RLOOConfig`."""
    if code is None:
        return ""
    renamed = ", ".join(f"{old} becomes {new}" for old, new in code.classes.items())
    return renamed or f"a subclass takes the place of {code.trainer}"


def _config_files(resolution: Resolution) -> tuple[str, ...]:
    configuration = resolution.launch.configuration
    given = (each for name in configuration.explicit_names() for each in configuration.given(name))
    return tuple(dict.fromkeys(each.span.path for each in given if each.origin == "file"))


def _sharing(drafts: Iterable[Draft]) -> list[list[Draft]]:
    """Drafts whose edits meet, directly or over others."""
    places: dict[tuple[str, int], int] = {}
    leaders: list[int] = []
    listed = list(drafts)

    def leader(at: int) -> int:
        while leaders[at] != at:
            leaders[at] = at = leaders[leaders[at]]
        return at

    for at, draft in enumerate(listed):
        leaders.append(at)
        for edit in draft.edits:
            for place in {(edit.path, edit.start), (edit.path, edit.end)}:
                leaders[leader(at)] = leader(places.setdefault(place, at))
    groups: dict[int, list[Draft]] = {}
    for at, draft in enumerate(listed):
        groups.setdefault(leader(at), []).append(draft)
    return [group for group in groups.values() if len(group) > 1]


def _united(wishes: Iterable[Wish]) -> Wish:
    """What all of them need; where two want different values of one setting the first counts, and the proof refuses the other."""
    write: dict[str, Entry] = {}
    remove: dict[str, None] = {}
    for each in sorted(wishes, key=lambda each: (-len(each.write), str(each))):
        for entry in each.write:
            known = write.setdefault(entry.name, entry)
            if known.like is None and entry.like is not None:
                write[entry.name] = entry
        remove |= dict.fromkeys(each.remove)
    return Wish(tuple(write.values()), tuple(name for name in remove if name not in write))
