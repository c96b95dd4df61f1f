"""OmegaConf's merge and update on a tree of items, copying only what changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from klaudit.frameworks.compose.found import Found
from klaudit.frameworks.compose.interpolation import Resolver
from klaudit.frameworks.compose.items import (
    Branch,
    Container,
    Item,
    Leaf,
    Listing,
    Written,
    child,
    split_key,
)
from klaudit.model import Unknown, Value

MAX_MERGED = 200_000  # entries of one composition; aliases can multiply a small file


class RefusedError(ValueError):
    """The program would end here with an error, before any training."""


class Work:
    """A configuration that is being put together from `root`, which itself stays as it is."""

    def __init__(self, root: Branch, environment: Mapping[str, str | None] | None = None) -> None:
        self._token = object()
        self._environment = environment
        self._merged = 0
        self.root = Branch(dict(root.items), root.written, self._token)

    def merge(self, source: Item, package: str = "", *, adds: bool = True) -> None:
        """Merge a file's content at a package; without `adds`, only into keys that exist.  Raises RefusedError."""
        item = source
        for key in reversed(split_key(package) if package else []):
            item = Branch({key: item}, source.written)
        if not isinstance(item, Branch):
            raise RefusedError("a list cannot be merged into the top level")
        self._merge(self.root, item, (self.root,), (), adds=adds)

    def forget(self, package: str, config: str, heads: frozenset[str] | None = None) -> None:
        """A file that cannot be read is merged at a package: what was set there before may have changed.

        `heads` are the only top-level keys that it can hold, None where it can hold any.
        """
        keys = split_key(package) if package else []
        item: Item = self.root
        for key in keys:
            inner = item.items.get(key) if isinstance(item, Branch) else None
            if inner is None:
                return
            item = inner
        if not keys and heads is not None:
            budget = [MAX_MERGED]
            changed = {key: _forgotten(self.root.items[key], config, budget) for key in self.root.items if key in heads}
            self.root = Branch(self.root.items | changed, self.root.written, self._token)
            return
        forgotten = _forgotten(item, config, [MAX_MERGED])
        if not keys:
            self.root = Branch(forgotten.items if isinstance(forgotten, Branch) else {}, self.root.written, self._token)
            return
        container: Container = self.root
        for key in keys[:-1]:
            container = self._owned_child(container, key, container.written)
        _put(container, keys[-1], forgotten)

    def update(self, name: str, new: Item, *, adds: bool) -> None:
        """Put an item at a dotted name; a branch is merged into a branch.

        With `adds`, keys that do not exist are made; without, they are refused (OmegaConf's struct mode).
        """
        *parents, last = split_key(name)
        container: Container = self.root
        above: list[Container] = []
        for key in parents:
            inner = container.items.get(key) if isinstance(container, Branch) else child(container, key)
            above.append(container)
            if isinstance(inner, Branch) and inner.owner is self._token:
                container = inner
                continue
            if isinstance(inner, Leaf) and isinstance(inner.value, Unknown):
                return  # what the key holds is unknown, and so is what becomes of it
            if inner is None and (not adds or isinstance(container, Listing)):
                raise RefusedError(f"there is no {'.'.join(split_key(name)[: len(above)])} in the config")
            container = self._owned_child(container, key, new.written)
        old = child(container, last)
        if old is None and (not adds or isinstance(container, Listing)):
            raise RefusedError(f"there is no {name} in the config")
        if isinstance(new, Leaf) or isinstance(old, (Leaf, type(None))):
            _put(container, last, new)
        elif isinstance(old, Branch) and isinstance(new, Branch):
            owned = self._own(old)
            _put(container, last, owned)
            self._merge(owned, new, (*above, container, owned), (*parents, last), adds=adds)
        elif isinstance(old, Listing) and isinstance(new, Listing):
            _put(container, last, new)
        else:
            raise RefusedError(f"{name}: a list and a mapping cannot be merged")

    def remove(self, name: str, value: Value) -> None:
        """Delete a key; a value given must be the one it has.

        Raises RefusedError where it is absent, null or another, and UnresolvedError where that cannot be known.
        """
        current = self.current(name)
        if isinstance(current, Unknown) or isinstance(value, Unknown):
            return
        if current is None:
            raise RefusedError(f"there is no {name} in the config to delete")
        if value is not None and value != current:
            raise RefusedError(f"{name} is {current}, not {value}")
        keys = split_key(name)
        container: Container = self.root
        for key in keys[:-1]:
            container = self._owned_child(container, key, container.written)
        if not isinstance(container, Branch):
            raise RefusedError(f"{name}: an item of a list cannot be deleted")
        container.items.pop(keys[-1], None)

    def current(self, name: str) -> Value:
        """The resolved value of a name, None for an absent or missing one.  Raises UnresolvedError."""
        resolver = Resolver(self.root, self._environment)
        found = resolver.find(name)
        if found is None or (isinstance(found.item, Leaf) and found.item.is_missing):
            return None
        return resolver.strict_value(found)[0]

    def _merge(
        self, target: Branch, source: Branch, above: tuple[Container, ...], name: tuple[str, ...], *, adds: bool
    ) -> None:
        """Merge `source` into `target`, which is ours and the last of `above`."""
        self._merged += len(source.items)
        if self._merged > MAX_MERGED:
            raise RefusedError(f"more than {MAX_MERGED:,} keys are merged")
        for key, new in source.items.items():
            old = target.items.get(key)
            if old is None:
                if not adds:
                    raise RefusedError(f"there is no {'.'.join((*name, key))} in the config")
                target.items[key] = new
                continue
            if isinstance(new, Leaf) and not new.is_missing:
                target.items[key] = new
                continue
            if isinstance(old, Leaf) and old.is_interpolation:
                old = self._reached(Found(old, above, (*name, key)))
            if isinstance(new, Leaf):  # a value that must still be given leaves what is there
                target.items[key] = target.items[key] if old is None else old
            elif isinstance(old, Leaf) or old is None or (isinstance(new, Listing) and isinstance(old, Listing)):
                target.items[key] = new
            elif isinstance(old, Branch) and isinstance(new, Branch):
                owned = self._own(old)
                owned.written = new.written
                target.items[key] = owned
                self._merge(owned, new, (*above, owned), (*name, key), adds=adds)
            else:
                raise RefusedError(f"{'.'.join((*name, key))}: a list and a mapping cannot be merged")

    def _reached(self, found: Found) -> Container | None:
        """What an interpolation leads to: a branch merged onto it starts from a copy of that."""
        container = Resolver(self.root, self._environment).container(found)
        return None if container is None else self._copy(container)

    def _copy(self, container: Container) -> Container:
        """A container that may stand in a second place: what we may change is copied, the rest shared."""
        if container.owner is not self._token:
            return container
        self._merged += len(container.items)
        if isinstance(container, Listing):
            return Listing([self._copied(item) for item in container.items], container.written, self._token)
        items = {key: self._copied(item) for key, item in container.items.items()}
        return Branch(items, container.written, self._token)

    def _copied(self, item: Item) -> Item:
        return item if isinstance(item, Leaf) else self._copy(item)

    def _owned_child(self, container: Container, key: str, written: Written) -> Container:
        """The container at a key, as one that we may change; a new branch where there is none."""
        inner = child(container, key)
        owned = Branch({}, written, self._token) if inner is None or isinstance(inner, Leaf) else self._own(inner)
        _put(container, key, owned)
        return owned

    @overload
    def _own(self, container: Branch) -> Branch: ...
    @overload
    def _own(self, container: Listing) -> Listing: ...
    def _own(self, container: Container) -> Container:
        if container.owner is self._token:
            return container
        if isinstance(container, Branch):
            return Branch(dict(container.items), container.written, self._token)
        return Listing(list(container.items), container.written, self._token)


def _put(container: Container, key: str, item: Item) -> None:
    if isinstance(container, Branch):
        container.items[key] = item
    else:
        container.items[int(key)] = item


def _forgotten(item: Item, config: str, budget: list[int]) -> Item:
    """The item with all its values unknown."""
    budget[0] -= 1
    if budget[0] < 0:
        raise RefusedError(f"more than {MAX_MERGED:,} keys are merged")
    if isinstance(item, Branch):
        return Branch({key: _forgotten(inner, config, budget) for key, inner in item.items.items()}, item.written)
    return Leaf(Unknown((config,)), item.written)
