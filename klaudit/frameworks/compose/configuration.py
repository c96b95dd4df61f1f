"""A configuration, whatever system made it: effective values by dotted name, each with the place where it was set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from klaudit.frameworks.compose.found import Found, UnresolvedError
from klaudit.frameworks.compose.interpolation import Resolver
from klaudit.frameworks.compose.items import Branch, Item, Leaf, Nowhere, from_value, leaves
from klaudit.model import Problem, Setting, Span, Unknown, Value

MAX_EXPLICIT = 5_000


class Own(Struct, frozen=True):
    """Something set by hand: the content of a file at a package, or one override."""

    name: str
    item: Item


class UnseenConfig(Struct, frozen=True):
    """A config that belongs into the composition at `package` but is not in the tree."""

    package: str
    config: str


@dataclass(frozen=True)
class Base:
    """What launches start from: composed once, shared by all of them.

    `is_closed` means that the keys are all there are: an override of another one is refused.  `own` is what the file that names this
    configuration sets itself, as opposed to what it inherits.
    """

    root: Branch
    is_closed: bool
    own: tuple[Own, ...] = ()
    problems: tuple[Problem, ...] = ()
    refused: str | None = None
    unseen: tuple[UnseenConfig, ...] = ()

    @cached_property
    def own_names(self) -> dict[str, list[tuple[str, Item]]]:
        """What `own` sets, by dotted name."""
        return _by_name(self.own)

    @cached_property
    def own_leaf_names(self) -> tuple[str, ...]:
        """The names of what `own` sets, in order."""
        return _leaf_names(self.own)


def shipped(defaults: Mapping[str, tuple[Value, str]], *, names: Sequence[str] | None = None) -> Base:
    """A base of shipped defaults: `{dotted name: (value, note)}`.

    `names` lists all keys of the config where they are known; without it no override is refused for its key.
    """
    root = Branch({}, Nowhere())
    for name in names or ():
        _plant(root, name, Leaf(Unknown((name,)), Nowhere()))
    for name, (value, note) in defaults.items():
        _plant(root, name, from_value(value, Nowhere(note)))
    return Base(root, names is not None)


class Configuration:
    """Effective settings.

    `unseen` names configs outside the tree: what they may have set is Unknown where the tree sets it too, and absent otherwise.
    `hangs_on` names what may hold further overrides that cannot be seen.
    """

    def __init__(
        self,
        root: Branch,
        *,
        own: Sequence[Own] = (),
        base: Base | None = None,
        problems: Sequence[Problem] = (),
        refused: str | None = None,
        refusals: Sequence[tuple[str, str]] = (),
        hangs_on: Sequence[str] = (),
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        self._root = root
        self._own = tuple(own)
        self._base = base
        self.problems = (*(base.problems if base else ()), *problems)
        self.refused = refused or (base.refused if base else None)
        self.refusals = (*((("", base.refused),) if base and base.refused else ()), *refusals)
        self.unseen = base.unseen if base else ()
        self.hangs_on = tuple(hangs_on)
        self._environment = environment
        self._resolver = Resolver(root, environment)

    def get(self, name: str) -> Setting | None:
        """The effective setting, None where nothing sets it; a branch has a dict or list as value.

        A value whose interpolation leads elsewhere has that place as `source` and its origin; one that cannot be known is Unknown.
        """
        item: Item | None = self._root
        for key in name.split("."):  # most names lead straight to a value
            if not isinstance(item, Branch):
                break
            item = item.items.get(key)
        else:
            if item is None:
                return None
            if isinstance(item, Leaf) and not item.is_interpolation and not item.is_missing:
                return item.written.setting(name, item.value)
        try:
            found = self._resolver.find(name)
        except UnresolvedError as error:
            return self._behind(name, error)
        return None if found is None else self._setting(name, found)

    def has(self, name: str) -> bool:
        """Whether the name exists, null included."""
        try:
            return self._resolver.find(name) is not None
        except UnresolvedError:
            return True

    def given(self, name: str) -> tuple[Setting, ...]:
        """What was set for exactly this name by hand, in order: entries of the config's own file, then overrides."""
        own = self._base.own_names.get(name, ()) if self._base else ()
        return tuple(self._explicit(name, item) for _, item in (*own, *self._own_names.get(name, ())))

    def explicit_names(self) -> tuple[str, ...]:
        """The names of all that was set by hand, leaf by leaf, in order; far cheaper than the settings."""
        return (*(self._base.own_leaf_names if self._base else ()), *_leaf_names(self._own))

    def note(self, name: str) -> str:
        """Where a shipped default is known from."""
        try:
            found = self._resolver.find(name)
        except UnresolvedError:
            return ""
        return found.item.written.note if found is not None and isinstance(found.item.written, Nowhere) else ""

    def names(self) -> Iterator[str]:
        """The dotted names of all leaves."""
        return (name for name, _ in leaves(self._root, "", MAX_EXPLICIT) if name)

    @cached_property
    def _own_names(self) -> dict[str, list[tuple[str, Item]]]:
        return _by_name(self._own)

    def _setting(self, name: str, found: Found) -> Setting:
        value, target = self._resolver.value(found)
        setting = found.item.written.setting(name, value)
        return setting if target is None else _led(setting, target.setting(name, value))

    def _explicit(self, name: str, item: Item) -> Setting:
        """A setting by hand keeps the value it was given, but for interpolations, which mean what they mean at its place."""
        above, _, last = name.rpartition(".")
        try:
            found = self._resolver.find(above) if above else None
        except UnresolvedError:
            found = None
        if found is None or isinstance(found.item, Leaf):
            return self._setting(name, Found(item, (self._root,), (name,)))
        return self._setting(name, Found(item, (*found.above, found.item), (*found.name, last)))

    def _behind(self, name: str, error: UnresolvedError) -> Setting | None:
        """The setting of a name below an interpolation that leads nowhere."""
        parts = name.split(".")
        while parts:
            parts.pop()
            try:
                found = self._resolver.find(".".join(parts))
            except UnresolvedError:
                continue
            if found is not None:
                return found.item.written.setting(name, Unknown(error.hangs_on))
        return None


def _led(setting: Setting, target: Setting) -> Setting:
    """A setting whose value was written at another key."""
    source: Span | None = target.source or target.value_span
    if target.origin == "default":
        source = None
    return replace(setting, origin=target.origin, source=source)


def _leaf_names(own: Sequence[Own]) -> tuple[str, ...]:
    names: list[str] = []
    for each in own:
        if isinstance(each.item, Leaf):  # as almost every override is
            names.append(each.name)
        else:
            names.extend(name for name, _ in leaves(each.item, each.name, MAX_EXPLICIT))
    return tuple(names)


def _by_name(own: Sequence[Own]) -> dict[str, list[tuple[str, Item]]]:
    names: dict[str, list[tuple[str, Item]]] = {}
    for each in own:
        if each.name and not isinstance(each.item, Leaf):
            names.setdefault(each.name, []).append((each.name, each.item))
        for name, item in leaves(each.item, each.name, MAX_EXPLICIT):
            if item is not each.item or isinstance(item, Leaf):
                names.setdefault(name, []).append((name, item))
    return names


def _plant(root: Branch, name: str, item: Item) -> None:
    *above, last = name.split(".")
    branch = root
    for key in above:
        inner = branch.items.get(key)
        if not isinstance(inner, Branch):
            inner = branch.items[key] = Branch({}, item.written)
        branch = inner
    branch.items[last] = item
