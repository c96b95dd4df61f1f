"""TOML -> trees of keys with exact byte spans.

The standard library's parser decides what is TOML and what a value means; the scanner here only finds where things stand.
"""

from __future__ import annotations

import re
import sys
from typing import NoReturn, TypeAlias

from msgspec import Struct, field

from klaudit.readers.document import Entry, MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.toml_values import toml_scalar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_DEPTH = 200
MAX_BYTES = 2_000_000  # larger ones are lock files; the standard library's parser is slow
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})' r"|'''.*?'''(?:'{0,2})" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[^\s,#\]}]*|[^\s,#\]}]+")
_LINE = re.compile(r"line ([0-9]+)")
# the parser takes quadratic time over long dotted keys
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]+[ \t]*\.[ \t]*){{{MAX_DEPTH}}}")


def read_toml(source: Source) -> TreeDocument:
    """The root table of a TOML text; an array of tables is a sequence of mappings.

    Raises UnreadableError, with the line, for text that is not TOML, nested deeper than MAX_DEPTH or over MAX_BYTES.
    """
    if len(source.data) > MAX_BYTES:
        raise UnreadableError(f"TOML larger than {MAX_BYTES // 1_000_000} MB")
    text = source.text.removeprefix("\ufeff")
    if deep := _DEEP_KEY.search(text):
        raise UnreadableError(f"nested deeper than {MAX_DEPTH} levels", text.count("\n", 0, deep.start()) + 1)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        raise UnreadableError(f"not TOML: {error}", int(line[1]) if line else None) from None
    except RecursionError:
        raise UnreadableError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # more digits than Python converts
        raise UnreadableError(f"not TOML: {error}") from None
    return TreeDocument(source, _Scanner(source).read())


_Key: TypeAlias = tuple[str, int, int]  # one part of a dotted key and its span, in characters


class _Table(Struct):
    """A table under construction: later headers may add to it."""

    start: int
    end: int
    keys: dict[str, _Key] = field(default_factory=dict)
    values: dict[str, _Table | _Tables | Node] = field(default_factory=dict)


class _Tables(Struct):
    """An array of tables; the last one is open."""

    items: list[_Table]


class _Scanner:
    """Finds keys and values in a text known to be TOML."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._offset = source.char_to_byte
        self._at = int(self._text.startswith("\ufeff"))

    def read(self) -> MappingNode:
        root = table = _Table(self._at, self._at)
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return self._finish(root)
            if self._text.startswith("[", self._at):
                table = self._header(root)
            else:
                self._pair(table, 0)

    def _header(self, root: _Table) -> _Table:
        start, is_array = self._at, self._text.startswith("[[", self._at)
        self._at += 1 + is_array
        *parents, last = self._keys()
        self._at += 1 + is_array
        if len(parents) >= MAX_DEPTH:
            self._too_deep()
        table = self._descend(root, parents, start)
        found = table.values.get(last[0])
        if is_array:
            new = _Table(start, self._at)
            if isinstance(found, _Tables):
                found.items.append(new)
            else:
                table.keys[last[0]], table.values[last[0]] = last, _Tables([new])
            return new
        if isinstance(found, _Table):
            found.start, found.end = start, self._at
            return found
        table.keys[last[0]] = last
        table.values[last[0]] = new = _Table(start, self._at)
        return new

    def _descend(self, table: _Table, parents: list[_Key], start: int) -> _Table:
        for part in parents:
            found = table.values.get(part[0])
            if isinstance(found, _Tables):
                table = found.items[-1]
            elif isinstance(found, _Table):
                table = found
            else:
                table.keys[part[0]] = part
                table.values[part[0]] = table = _Table(start, start)
        return table

    def _pair(self, table: _Table, depth: int) -> None:
        *parents, last = self._keys()
        if len(parents) + depth >= MAX_DEPTH:
            self._too_deep()
        start = parents[1][1] if len(parents) > 1 else last[1]
        inner = self._descend(table, parents, start)
        self._skip(_SPACE)
        self._at += 1  # the =
        self._skip(_SPACE)
        inner.keys[last[0]], inner.values[last[0]] = last, self._value(depth + len(parents) + 1)
        for part in parents:
            table.end = max(table.end, self._at)
            found = table.values[part[0]]
            table = found if isinstance(found, _Table) else table
        table.end = max(table.end, self._at)

    def _keys(self) -> list[_Key]:
        keys: list[_Key] = []
        while True:
            self._skip(_SPACE)
            start = self._at
            quoted = _STRING.match(self._text, start)
            match = quoted or _BARE_KEY.match(self._text, start)
            if match is None:
                self._fail()
            self._at = match.end()
            keys.append((_unquoted(match[0]) if quoted else match[0], start, self._at))
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self._too_deep()
        start = self._at
        if match := _STRING.match(self._text, start):
            self._at = match.end()
            return ScalarNode(_unquoted(match[0]), False, self._offset(start), self._offset(self._at))
        if self._text.startswith("[", start):
            return self._array(depth)
        if self._text.startswith("{", start):
            return self._inline_table(depth)
        if (match := _BARE_VALUE.match(self._text, start)) is None:
            self._fail()
        self._at = match.end()
        return ScalarNode(match[0], True, self._offset(start), self._offset(self._at))

    def _array(self, depth: int) -> SequenceNode:
        start, items = self._at, list[Node]()
        self._at += 1
        while True:
            self._skip(_BLANK)
            if self._text.startswith("]", self._at):
                self._at += 1
                return SequenceNode(tuple(items), self._offset(start), self._offset(self._at))
            items.append(self._value(depth + 1))
            self._skip(_BLANK)
            if self._text.startswith(",", self._at):
                self._at += 1

    def _inline_table(self, depth: int) -> MappingNode:
        table = _Table(self._at, self._at)
        self._at += 1
        while True:
            self._skip(_BLANK)
            if self._text.startswith("}", self._at):
                self._at += 1
                table.end = self._at
                return self._finish(table)
            self._pair(table, depth)
            self._skip(_BLANK)
            if self._text.startswith(",", self._at):
                self._at += 1

    def _finish(self, table: _Table) -> MappingNode:
        entries, end = [], table.end
        for name, value in table.values.items():
            node = self._finished(value)
            _, key_start, key_end = table.keys[name]
            entries.append(Entry(name, self._offset(key_start), self._offset(key_end), node))
        stop = max((entry.value.end for entry in entries), default=0)
        return MappingNode(tuple(entries), self._offset(table.start), max(self._offset(end), stop))

    def _finished(self, value: _Table | _Tables | Node) -> Node:
        if isinstance(value, _Tables):
            items = tuple(self._finish(table) for table in value.items)
            return SequenceNode(items, items[0].start, items[-1].end)
        return self._finish(value) if isinstance(value, _Table) else value

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _too_deep(self) -> NoReturn:
        line = self._source.line_of(self._offset(self._at))
        raise UnreadableError(f"nested deeper than {MAX_DEPTH} levels", line)

    def _fail(self) -> NoReturn:
        raise UnreadableError("not TOML as this reader knows it", self._source.line_of(self._offset(self._at)))


def _unquoted(text: str) -> str:
    if text.startswith(('"""', "'''")) or "\\" in text:
        value = toml_scalar(text)
        return value if isinstance(value, str) else text
    return text[1:-1]
