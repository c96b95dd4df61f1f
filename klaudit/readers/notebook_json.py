"""The cells of a notebook file and where their texts stand.

Most of a notebook is outputs, which the standard library's decoder skips ten times faster than a tree of the whole could be made.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from typing import Any

from msgspec import Struct, field

from klaudit.readers.source import Source, UnreadableError

_SPACE = re.compile(r"[ \t\n\r]*")
_BOM = b"\xef\xbb\xbf"


class RawCell(Struct):
    """One cell: its JSON without text and outputs, and the spans of the strings (inside the quotes) that make its text."""

    value: dict[str, Any] = field(default_factory=dict)
    strings: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0


def read_cells(source: Source) -> tuple[dict[str, Any], list[RawCell]]:
    """The notebook's metadata and its cells in order.

    Raises UnreadableError, with the line, for what is not JSON, and for JSON that is not a notebook.
    """
    data = source.data
    try:
        data.decode("utf-8")
        return _Scanner(data).notebook()
    except UnicodeDecodeError:
        source.text  # noqa: B018  # raises the error with its line
        raise
    except JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error.msg}", data.count(b"\n", 0, error.pos) + 1) from None
    except RecursionError:
        raise UnreadableError("JSON nested too deep") from None


class _Scanner:
    """Walks the objects and arrays that lead to cells; everything else is decoded in one step.

    It reads bytes as Latin-1, so that characters and bytes count the same; only ASCII names are looked at.
    """

    def __init__(self, data: bytes) -> None:
        self._text = data.decode("latin-1")
        self._start = len(_BOM) if data.startswith(_BOM) else 0
        self._decoder = JSONDecoder(parse_int=str)  # whatever its length
        self._metadata: dict[str, Any] = {}
        self._cells: list[RawCell] | None = None

    def notebook(self) -> tuple[dict[str, Any], list[RawCell]]:
        at = self._space(self._start)
        end = self._object(at, self._root) if self._text.startswith("{", at) else self._value(at)[1]
        end = self._space(end)
        if end < len(self._text):
            raise JSONDecodeError("Extra data", self._text, end)
        if self._cells is None:
            raise UnreadableError("not a notebook: no list of cells")
        return self._metadata, self._cells

    def _root(self, key: str, at: int) -> int:
        if key == "cells" and self._text.startswith("[", at):
            self._cells = []  # given twice, the last list counts
            return self._array(at, self._cell)
        if key == "worksheets" and self._text.startswith("[", at):
            self._cells = []
            return self._array(at, self._sheet)
        value, end = self._value(at)
        if key == "metadata" and isinstance(value, dict):
            self._metadata = value
        return end

    def _sheet(self, at: int) -> int:
        """nbformat 3 keeps the cells in worksheets."""

        def entry(key: str, at: int) -> int:
            cells = key == "cells" and self._text.startswith("[", at)
            return self._array(at, self._cell) if cells else self._value(at)[1]

        return self._object(at, entry) if self._text.startswith("{", at) else self._value(at)[1]

    def _cell(self, at: int) -> int:
        if not self._text.startswith("{", at):
            return self._value(at)[1]
        cell = RawCell()

        def entry(key: str, at: int) -> int:
            if key in ("source", "input"):  # nbformat 3 calls the text of a code cell its input
                cell.strings = []
                return self._strings(at, cell.strings)
            value, end = self._value(at)
            if key != "outputs":
                cell.value[key] = value
            return end

        end = self._object(at, entry)
        cell.end = end - 1
        if self._cells is not None:
            self._cells.append(cell)
        return end

    def _strings(self, at: int, spans: list[tuple[int, int]]) -> int:
        def element(at: int) -> int:
            end = self._value(at)[1]
            if self._text.startswith('"', at):
                spans.append((at + 1, end - 1))
            return end

        return self._array(at, element) if self._text.startswith("[", at) else element(at)

    # --- JSON --------------------------------------------------------------------------------------------------------

    def _space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match is not None else at

    def _value(self, at: int) -> tuple[Any, int]:
        return self._decoder.raw_decode(self._text, at)

    def _object(self, at: int, entry: Callable[[str, int], int]) -> int:
        def element(at: int) -> int:
            if not self._text.startswith('"', at):
                raise JSONDecodeError("Expecting property name enclosed in double quotes", self._text, at)
            key, end = self._value(at)
            end = self._space(end)
            if not self._text.startswith(":", end):
                raise JSONDecodeError("Expecting ':' delimiter", self._text, end)
            return entry(key, self._space(end + 1))

        return self._array(at, element, "}")

    def _array(self, at: int, element: Callable[[int], int], closing: str = "]") -> int:
        """Just after the bracket that closes the one at `at`; `element` says where each element ends."""
        at = self._space(at + 1)
        if self._text.startswith(closing, at):
            return at + 1
        while True:
            at = self._space(element(at))
            if self._text.startswith(closing, at):
                return at + 1
            if not self._text.startswith(",", at):
                raise JSONDecodeError("Expecting ',' delimiter", self._text, at)
            at = self._space(at + 1)
