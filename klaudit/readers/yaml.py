"""YAML -> trees of keys with exact byte spans.

Built on the parser's events, not on its `compose`: events need no recursion, so hostile nesting and alias bombs stay
bounded, and they cost half as much.  What a plain scalar means (`off`, `1e-3`) depends on who reads it and is left to
`scalars.resolve_scalar`.
"""

from __future__ import annotations

import re
from typing import Protocol

import yaml
from msgspec import Struct, field

from klaudit.readers.document import Entry, MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.merge_keys import merged, parts_of
from klaudit.readers.source import Source, UnreadableError

MAX_DEPTH = 200  # configs stay under 30; consumers may recurse
MAX_NODES = 300_000  # more is data, not a config
_BOM = b"\xef\xbb\xbf"
_PROPERTIES = re.compile(rb"(?:[&!][^\s,\[\]{}]*[ \t]*)*")  # anchor and tag before a node
_MERGE_TAG = "tag:yaml.org,2002:merge"
_TEMPLATE = re.compile(rb"\{\{|\{%")
_Loader: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Mark(Protocol):
    """A position, in characters."""

    @property
    def index(self) -> int: ...


def read_yaml(source: Source) -> tuple[TreeDocument, ...]:
    """All documents of a YAML text; an empty file has none.

    Merge keys are expanded (`merge_keys`), aliases stand where they are used (their children where the anchor is), duplicate keys are
    all kept.
    Raises UnreadableError, with the line, for text that is not YAML, nested deeper than MAX_DEPTH or larger than MAX_NODES.
    """
    return _Reader(source).read()


class _Open(Struct):
    """A mapping or sequence whose end has not been seen yet."""

    start: int
    is_mapping: bool
    is_flow: bool
    anchor: str | None
    entries: list[Entry] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    merged: list[MappingNode] = field(default_factory=list)
    key: ScalarNode | None = None
    height: int = 0


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._data = source.data
        self._is_ascii = source.data.isascii()
        self._skip = 0
        if not self._is_ascii:
            source.text  # noqa: B018 - raises where the bytes are not UTF-8, with a better message than the parser's
            self._skip = int(source.data.startswith(_BOM))  # the parser gets the text without it
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._nodes = 0

    def read(self) -> tuple[TreeDocument, ...]:
        try:
            return self._documents()
        except yaml.MarkedYAMLError as error:
            problem, mark = str(error.problem or error.context), error.problem_mark or error.context_mark
            raise self._unreadable(problem, self._offset(mark)) from None
        except yaml.reader.ReaderError as error:
            at = error.position + len(_BOM) * self._skip
            raise self._unreadable(f"control character {_shown(error.character)}", at) from None
        except (ValueError, OverflowError) as error:  # the pure Python scanner lets a bad \U escape through
            raise error if isinstance(error, UnreadableError) else UnreadableError(f"not YAML: {error}") from None

    def _documents(self) -> tuple[TreeDocument, ...]:
        documents: list[TreeDocument] = []
        header = _leading_comments(self._data, len(_BOM) * self._skip)
        root: Node | None = None
        next_event = _Loader(self._data[len(_BOM) :] if self._skip else self._data).get_event
        while True:
            event = next_event()
            if isinstance(event, yaml.ScalarEvent):
                node: Node = self._scalar(event)
                height = 0
                if event.anchor is not None:
                    self._anchors[event.anchor] = (node, 0)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open(event)
                continue
            elif isinstance(event, yaml.CollectionEndEvent):
                opened = self._stack.pop()
                node, height = self._close(opened, self._offset(event.end_mark))
                if opened.anchor is not None:
                    self._anchors[opened.anchor] = (node, height)
            elif isinstance(event, yaml.AliasEvent):
                node, height = self._alias(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                documents.append(TreeDocument(self._source, root, header))
                header, root = _leading_comments(self._data, self._offset(event.end_mark)), None
                self._anchors.clear()
                continue
            elif event is None:
                return tuple(documents)
            else:
                continue
            if self._stack:
                self._attach(self._stack[-1], node, height)
            else:
                root = node

    def _scalar(self, event: yaml.ScalarEvent) -> ScalarNode:
        start, end = self._offset(event.start_mark), self._offset(event.end_mark)
        tag = event.tag if event.tag != "!" else None
        if event.anchor is not None or event.tag is not None:
            start = self._after_properties(start, end)
        if event.style in ("|", ">"):  # the parser counts the line break after the block in
            end = start + len(self._data[start:end].rstrip())
        self._count(start)
        return ScalarNode(event.value, event.implicit[0], start, end, tag)

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        start = self._offset(event.start_mark)
        if self._stack and self._stack[-1].is_mapping and self._stack[-1].key is None:
            raise self._unreadable("a mapping or list as a key", start)
        if len(self._stack) >= MAX_DEPTH:
            raise self._too_deep(start)
        if event.anchor is not None or event.tag is not None:
            if event.anchor is not None:
                self._anchors.pop(event.anchor, None)  # until it is closed, an alias to it would be a cycle
            start = self._after_properties(start, len(self._data))
        self._stack.append(
            _Open(start, isinstance(event, yaml.MappingStartEvent), bool(event.flow_style), event.anchor)
        )

    def _close(self, opened: _Open, end: int) -> tuple[Node, int]:
        self._count(opened.start)
        start = opened.start
        if opened.is_mapping:
            if opened.entries and not opened.is_flow:  # the parser ends a block where the next token begins
                start, end = opened.entries[0].key_start, opened.entries[-1].value.end
            return MappingNode(self._with_merged(opened), start, end), opened.height + 1
        if opened.items and not opened.is_flow:
            end = opened.items[-1].end
            if self._data[start : start + 1] != b"-":  # an anchor or tag stands on a line of its own before it
                start = max(self._data.rfind(b"-", 0, opened.items[0].start), 0)
        return SequenceNode(tuple(opened.items), start, end), opened.height + 1

    def _with_merged(self, opened: _Open) -> tuple[Entry, ...]:
        if not opened.merged:
            return tuple(opened.entries)
        own = frozenset(entry.key for entry in opened.entries)
        return (*merged(opened.merged, own, self._count), *opened.entries)

    def _alias(self, event: yaml.AliasEvent) -> tuple[Node, int]:
        start, end = self._offset(event.start_mark), self._offset(event.end_mark)
        found = self._anchors.get(event.anchor or "")
        if found is None:
            is_cycle = any(opened.anchor == event.anchor for opened in self._stack)
            where = "inside its own anchor" if is_cycle else "without an anchor"
            raise self._unreadable(f"alias *{event.anchor} {where}", start)
        self._count(start)
        node, height = found
        if isinstance(node, ScalarNode):
            return ScalarNode(node.text, node.plain, start, end, node.tag), height
        if isinstance(node, MappingNode):
            return MappingNode(node.entries, start, end), height
        return SequenceNode(node.items, start, end), height

    def _attach(self, parent: _Open, node: Node, height: int) -> None:
        if height >= parent.height:
            parent.height = height
            if height + 1 >= MAX_DEPTH:  # aliases stack up depth without nesting
                raise self._too_deep(node.start)
        if not parent.is_mapping:
            parent.items.append(node)
            return
        key = parent.key
        if key is None:
            if not isinstance(node, ScalarNode):
                raise self._unreadable("a mapping or list as a key", node.start)
            parent.key = node
            return
        parent.key = None
        if key.tag == _MERGE_TAG or (key.text == "<<" and key.plain and key.tag is None):
            self._merge(parent, node)
        else:
            parent.entries.append(Entry(key.text, key.start, key.end, node))

    def _merge(self, parent: _Open, node: Node) -> None:
        parts = parts_of(node)
        if parts is None:
            raise self._unreadable("a merge key (<<) wants a mapping or a list of mappings", node.start)
        for part in parts:
            self._count(node.start)
            parent.merged.append(part)

    def _offset(self, mark: _Mark | None) -> int:
        if mark is None:
            return 0
        return mark.index if self._is_ascii else self._source.char_to_byte(mark.index + self._skip)

    def _after_properties(self, start: int, end: int) -> int:
        match = _PROPERTIES.match(self._data, start, end)
        return match.end() if match else start

    def _count(self, offset: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise UnreadableError(f"more than {MAX_NODES:,} values: data, not a config", self._source.line_of(offset))

    def _too_deep(self, offset: int) -> UnreadableError:
        return UnreadableError(f"nested deeper than {MAX_DEPTH} levels", self._source.line_of(offset))

    def _unreadable(self, problem: str, offset: int) -> UnreadableError:
        if _TEMPLATE.search(self._data):
            problem = "a template ({{ ... }} or {% ... %}), not plain YAML"
        elif self._data[offset : offset + 1] == b"\t":
            problem = "not YAML: a tab where only spaces may indent"
        else:
            problem = f"not YAML: {problem}"
        return UnreadableError(problem, self._source.line_of(offset))


def _leading_comments(data: bytes, start: int) -> str:
    """The comment and blank lines from `start` on."""
    at = start
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end == -1 else end + 1
        line = data[at:end].strip()
        if line and not line.startswith(b"#"):
            break
        at = end
    return data[start:at].decode("utf-8", "replace")


def _shown(character: int | bytes | str) -> str:
    code = character if isinstance(character, int) else ord(character) if len(character) == 1 else 0
    return f"0x{code:02x}"
