"""JSON -> trees of keys with exact byte spans, without recursion.

As strict as Python's `json`, which also accepts NaN and Infinity; duplicate keys are all kept.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from typing import NoReturn

from msgspec import Struct, field

from klaudit.readers.document import Entry, MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.source import Source, UnreadableError

MAX_DEPTH = 200
MAX_NODES = 300_000
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(
    r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity)(?![\w.+-])"
)
_STRING = JSONDecoder()


def read_json(source: Source) -> TreeDocument:
    """The one value of a JSON text.

    Raises UnreadableError, with the line, for anything else (comments and trailing commas are named as such) and for
    text nested deeper than MAX_DEPTH or with more than MAX_NODES values.
    """
    return TreeDocument(source, _Reader(source).read())


class _Open(Struct):
    """An object or array whose end has not been seen yet; `key` is the pending key and its span, in characters."""

    start: int
    is_mapping: bool
    entries: list[Entry] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    key: tuple[str, int, int] | None = None


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._offset = source.char_to_byte
        self._at = int(self._text.startswith("\ufeff"))
        self._stack: list[_Open] = []
        self._nodes = 0

    def read(self) -> Node:
        self._skip_space()
        if self._at == len(self._text):
            self._fail("empty")
        while True:
            node = self._value()
            while node is not None:
                if not self._stack:
                    self._skip_space()
                    if self._at < len(self._text):
                        self._fail("more text after the value")
                    return node
                node = self._attach(self._stack[-1], node)

    def _value(self) -> Node | None:
        """The scalar or empty collection that begins here; None after opening a collection with something in it."""
        self._skip_space()
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._fail(f"more than {MAX_NODES:,} values: data, not a config")
        start, character = self._at, self._text[self._at : self._at + 1]
        if character == '"':
            text = self._string()
            return ScalarNode(text, False, self._offset(start), self._offset(self._at))
        if character in ("{", "["):
            if len(self._stack) >= MAX_DEPTH:
                self._fail(f"nested deeper than {MAX_DEPTH} levels")
            opened = _Open(start, character == "{")
            self._at += 1
            self._skip_space()
            if self._text[self._at : self._at + 1] == ("}" if opened.is_mapping else "]"):
                return self._close(opened)
            self._stack.append(opened)
            if opened.is_mapping:
                self._key(opened)
            return None
        match = _PLAIN.match(self._text, start)
        if match is None:
            self._fail("expected a value")
        self._at = match.end()
        return ScalarNode(match[0], True, self._offset(start), self._offset(self._at))

    def _attach(self, parent: _Open, node: Node) -> Node | None:
        """Put `node` into its parent; the parent itself where it ends here."""
        if parent.key is not None:
            key, start, end = parent.key
            parent.entries.append(Entry(key, self._offset(start), self._offset(end), node))
        else:
            parent.items.append(node)
        self._skip_space()
        character, closing = self._text[self._at : self._at + 1], "}" if parent.is_mapping else "]"
        if character == closing:
            return self._close(self._stack.pop())
        if character != ",":
            self._fail(f"expected , or {closing}")
        comma = self._at
        self._at += 1
        self._skip_space()
        if self._text[self._at : self._at + 1] == closing:
            self._at = comma
            self._fail(f"a comma before the closing {closing}")
        if parent.is_mapping:
            self._key(parent)
        return None

    def _close(self, opened: _Open) -> Node:
        self._at += 1
        start, end = self._offset(opened.start), self._offset(self._at)
        if opened.is_mapping:
            return MappingNode(tuple(opened.entries), start, end)
        return SequenceNode(tuple(opened.items), start, end)

    def _key(self, opened: _Open) -> None:
        start = self._at
        if self._text[start : start + 1] != '"':
            self._fail("expected a key in double quotes")
        text = self._string()
        opened.key = (text, start, self._at)
        self._skip_space()
        if self._text[self._at : self._at + 1] != ":":
            self._fail("expected : after a key")
        self._at += 1

    def _string(self) -> str:
        try:
            text, self._at = _STRING.raw_decode(self._text, self._at)
        except JSONDecodeError as error:
            self._at = error.pos
            self._fail(error.msg)
        return str(text)

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _fail(self, problem: str) -> NoReturn:
        if self._text.startswith(("//", "/*", "#"), self._at):
            problem = "a comment"
        raise UnreadableError(f"not JSON: {problem}", self._source.line_of(self._offset(self._at)))
