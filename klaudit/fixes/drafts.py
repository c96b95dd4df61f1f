"""Launches on their way to a migration: those that share words of a script are changed together, each word once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from klaudit.findings.wording import change_text
from klaudit.fixes.commands import Commands
from klaudit.fixes.migration import Migration
from klaudit.fixes.page import CannotEditError
from klaudit.fixes.rewrite import edits_of
from klaudit.fixes.wish import Entry, Pages, Wish, wish
from klaudit.frameworks.migrate import Change
from klaudit.frameworks.resolve import Resolution
from klaudit.model import Edit
from klaudit.readers.source import UnreadableError


@dataclass(slots=True)
class Draft:
    """A launch and what it needs.  `why` says why it gets no edits."""

    path: str
    at: int
    resolution: Resolution
    rules: tuple[str, ...]
    change: Change
    instead: tuple[str, ...]
    wish: Wish = field(init=False)
    edits: list[Edit] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    why: str = ""
    is_overruling: bool = False
    guards: list[Edit] = field(default_factory=list)
    guarded: dict[tuple[str, int], frozenset[str]] = field(
        default_factory=dict
    )  # settings said by the guards, by launch

    def __post_init__(self) -> None:
        self.wish = wish(self.change, self.resolution)

    def write(self, pages: Pages, files: Mapping[str, Draft]) -> None:
        """Makes the edits.  What a config file will set anyway, because it is changed as a set-up of its own, needs none here."""
        base = next((files[path] for path in self._files() if path in files), None)
        left = self.wish if base is None or base is self else self._without(base.wish)
        try:
            self.edits, self.notes = edits_of(left, self.resolution, pages)
            if base is not None and left is not self.wish:
                self.edits = [*self.edits, *base.edits]
        except (CannotEditError, UnreadableError, UnicodeError) as error:
            self.edits, self.why = [], str(error)

    def overrule(self, pages: Pages, why: str) -> None:
        """Leaves in peace what other launches share, and writes over it in the command.  Raises CannotEditError."""
        if self.is_overruling or self.resolution.launch.kind != "launch":
            raise CannotEditError(why)
        self.edits = Commands(pages, self.resolution).overrule(self.wish)
        self.is_overruling = True
        self.notes = (*self.notes, f"set in the command itself: {why}")

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*(entry.name for entry in self.wish.write), *self.wish.remove))

    def _files(self) -> dict[str, None]:
        """The config files that set something of this launch."""
        configuration = self.resolution.launch.configuration
        given = (each for name in configuration.explicit_names() for each in configuration.given(name))
        return dict.fromkeys(each.span.path for each in given if each.origin == "file")

    def _without(self, other: Wish) -> Wish:
        """The wish without what the config file below will hold and nothing above it overrules."""
        given = self.resolution.launch.configuration.given
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
            before=self.resolution.setup,
            rules=self.rules,
            target=change.recipe.target,
            title=change_text(change, self.resolution),
            explanation=change.explanation,
            rescued=change.rescued_from_std,
            safety=change.recipe.safety,
            edits=(*self.edits, *self.guards),
            names=self.names,
            amount=change.amount,
            notes=self.notes,
        )


def write_together(drafts: Sequence[Draft], pages: Pages) -> None:
    """Gives every draft its edits.  Launches that touch the same words get all that any of them needs."""
    files = {draft.path: draft for draft in drafts if draft.resolution.launch.kind == "config"}
    for draft in sorted(drafts, key=lambda draft: draft.resolution.launch.kind != "config"):  # launches build on files
        draft.write(pages, files)
    for group in _sharing(drafts):
        wishes = [each.wish for each in group]
        if any(each != wishes[0] for each in wishes):
            united = _united(wishes)
            for draft in group:
                draft.wish = united
                draft.write(pages, files)


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
