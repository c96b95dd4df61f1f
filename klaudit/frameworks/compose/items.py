"""A configuration under composition: branches, lists and leaves that know where each value was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol, TypeAlias

from msgspec import Struct

from klaudit.model import Scalar, Setting, Span, Unknown, Value
from klaudit.readers.document import Entry, MappingNode, Node, ScalarNode
from klaudit.readers.scalars import Dialect, resolve_scalar
from klaudit.readers.source import Source

MISSING = "???"  # OmegaConf's mark for a value that must still be given


class Written(Protocol):
    """Where a value was written."""

    def setting(self, name: str, value: Value) -> Setting:
        """The setting of `name` to `value` at this place."""


NOWHERE = Span("", 0, 0, 0, 0, 0, 0)  # of values that stand in no file


class Nowhere(Struct, frozen=True):
    """A value that stands in no file: a shipped default, with a note on where it is known from."""

    note: str = ""

    def setting(self, name: str, value: Value) -> Setting:
        return Setting(name, value, NOWHERE, NOWHERE, "default", None, self.note)


class InFile(Struct):
    """An entry of a config file, or an item of a list in one (`entry` is then the item)."""

    source: Source
    entry: Entry | Node
    _spans: tuple[Span, Span] | None = None
    _setting: Setting | None = None  # the last one asked for: hundreds of launches ask the same

    def setting(self, name: str, value: Value) -> Setting:
        known = self._setting
        if known is None or known.name != name or known.value is not value:
            span, value_span = self.spans
            raw = self.source.data[self._node.start : self._node.end].decode("utf-8", "replace")
            known = self._setting = Setting(name, value, span, value_span, "file", None, raw)
        return known

    @property
    def spans(self) -> tuple[Span, Span]:
        """The whole entry and the value alone."""
        if self._spans is None:
            node = self._node
            value_span = self.source.span(node.start, node.end)
            span = value_span
            if isinstance(self.entry, Entry):
                span = self.source.span(self.entry.key_start, max(node.end, self.entry.key_end))
            self._spans = (span, value_span)
        return self._spans

    @property
    def _node(self) -> Node:
        return self.entry.value if isinstance(self.entry, Entry) else self.entry


class Leaf(Struct, frozen=True):
    """A scalar; text with `${` in it is an interpolation, resolved when someone asks, unless it is the result of one."""

    value: Scalar | Unknown
    written: Written
    is_result: bool = False

    @property
    def is_interpolation(self) -> bool:
        return isinstance(self.value, str) and "${" in self.value and not self.is_result

    @property
    def is_missing(self) -> bool:
        return self.value == MISSING


class Branch(Struct):
    """A mapping.  Shared between configurations unless `owner` is the one at work, which alone may change it."""

    items: dict[str, Item]
    written: Written
    owner: object | None = None


class Listing(Struct):
    """A list, shared in the same way."""

    items: list[Item]
    written: Written
    owner: object | None = None


Item: TypeAlias = Leaf | Branch | Listing
Container: TypeAlias = Branch | Listing


def from_value(value: Value, written: Written) -> Item:
    """A value given in one place (an override, a shipped default)."""
    if isinstance(value, dict):
        return Branch({key: from_value(inner, written) for key, inner in value.items()}, written)
    if isinstance(value, list):
        return Listing([from_value(inner, written) for inner in value], written)
    return Leaf(value, written)


class FromNodes:
    """Trees of one file as items.  Aliased nodes are shared, so that alias bombs stay small.

    `duplicates` are the entries whose key stands twice in one mapping, which OmegaConf refuses.
    """

    def __init__(self, source: Source, dialect: Dialect) -> None:
        self._source = source
        self._dialect = dialect
        self._branches: dict[int, dict[str, Item]] = {}
        self._listings: dict[int, list[Item]] = {}
        self.duplicates: list[Entry] = []

    def item(self, node: Node, written: Written) -> Item:
        if isinstance(node, ScalarNode):
            return Leaf(resolve_scalar(node, self._dialect), written)
        if isinstance(node, MappingNode):
            known = self._branches.get(id(node.entries))
            if known is None:
                known = self._branches[id(node.entries)] = self._entries(node.entries)
            return Branch(known, written)
        items = self._listings.get(id(node.items))
        if items is None:
            items = [self.item(inner, InFile(self._source, inner)) for inner in node.items]
            self._listings[id(node.items)] = items
        return Listing(items, written)

    def _entries(self, entries: tuple[Entry, ...]) -> dict[str, Item]:
        items: dict[str, Item] = {}
        for entry in entries:
            if entry.key in items:
                self.duplicates.append(entry)
            items[entry.key] = self.item(entry.value, InFile(self._source, entry))
        return items


_KEY_HEAD = re.compile(r"\.*[^.[]*")
_KEY_REST = re.compile(r"\.([^.[]*)|\[(.*?)\]")


def split_key(key: str) -> list[str]:
    """The parts of a dotted name; `a[b].c` and `a.b.c` are the same."""
    if "[" not in key:
        return key.split(".")
    head = _KEY_HEAD.match(key)
    stop = head.end() if head else 0
    parts = key[:stop].split(".")
    if stop < len(key) and not parts[-1]:
        parts.pop()
    return parts + [dotted or bracketed for dotted, bracketed in _KEY_REST.findall(key[stop:])]


def child(container: Container, key: str) -> Item | None:
    """The item at a key, or at an index of a list."""
    if isinstance(container, Branch):
        return container.items.get(key)
    try:
        at = int(key)
    except ValueError:
        return None
    return container.items[at] if 0 <= at < len(container.items) else None


def leaves(item: Item, name: str, limit: int) -> Iterator[tuple[str, Item]]:
    """The leaves and lists below an item with their dotted names, `limit` of them at most."""
    stack = [(name, item)]
    while stack and limit > 0:
        name, item = stack.pop()
        if isinstance(item, Branch) and item.items:
            stack.extend((f"{name}.{key}" if name else key, inner) for key, inner in reversed(item.items.items()))
        else:
            limit -= 1
            yield name, item


def scalars(item: Item, limit: int) -> Iterator[Leaf]:
    """The leaves below an item, those in lists included, `limit` of them at most."""
    stack = [item]
    while stack and limit > 0:
        limit -= 1
        item = stack.pop()
        if isinstance(item, Leaf):
            yield item
        else:
            stack.extend(item.items.values() if isinstance(item, Branch) else item.items)
