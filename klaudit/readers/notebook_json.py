"""The cells of a notebook file and where their texts stand, ten times faster than a tree of all the JSON: most of it is outputs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from klaudit.readers.source import Source, UnreadableError

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"(?P<colon>\s*:)?|[\[\]{}]', re.DOTALL)
_CELL_LISTS = ([b"{", b'"cells"'], [b"{", b'"worksheets"', b"{", b'"cells"'])
_TEXT_KEYS = (b'"source"', b'"input"')  # nbformat 3 calls the text of a code cell its input


@dataclass(slots=True)
class RawCell:
    """One cell: its JSON, and the spans of the strings (inside the quotes) whose joined texts are the cell's text."""

    value: dict[str, Any]
    strings: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0


def read_cells(source: Source) -> tuple[dict[str, Any], list[RawCell]]:
    """The notebook's metadata and its cells in order.

    Raises UnreadableError, with the line, for what is not JSON, and for JSON that is not a notebook.
    """
    text = source.text.removeprefix("\ufeff")
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise UnreadableError("JSON nested too deep") from None
    except ValueError as error:
        raise UnreadableError(f"not JSON: {error}") from None
    values = _cells_of(root)
    if values is None:
        raise UnreadableError("not a notebook: no list of cells")
    cells = _located(source.data)
    if len(cells) != len(values):
        raise UnreadableError("not a notebook: cells given twice or not as objects")
    for cell, value in zip(cells, values, strict=True):
        cell.value = value
    metadata = root.get("metadata")
    return metadata if isinstance(metadata, dict) else {}, cells


def _cells_of(root: object) -> list[dict[str, Any]] | None:
    """nbformat 3 keeps the cells in worksheets."""
    if not isinstance(root, dict):
        return None
    sheets = root.get("worksheets")
    holders = sheets if isinstance(sheets, list) else [root]
    lists = [holder.get("cells") for holder in holders if isinstance(holder, dict)]
    found = [cell for cells in lists if isinstance(cells, list) for cell in cells]
    if not any(isinstance(cells, list) for cells in lists):
        return None
    return [cell for cell in found if isinstance(cell, dict)]


def _located(data: bytes) -> list[RawCell]:
    """Every cell of a text that is known to be JSON, by a scan over its strings and brackets."""
    cells: list[RawCell] = []
    path: list[bytes] = []  # for each open bracket its key, or the bracket itself where it has none
    key = b""
    cell: RawCell | None = None
    cell_depth = 0
    for match in _TOKEN.finditer(data):
        token = match.group()
        first = token[:1]
        if first == b'"':
            if match["colon"] is not None:
                key = token[: token.rindex(b'"') + 1]
                if cell is not None and len(path) == cell_depth and key in _TEXT_KEYS:
                    cell.strings.clear()  # given twice, the last one counts
            elif cell is not None and _is_text(path, key, cell_depth):
                cell.strings.append((match.start() + 1, match.end() - 1))
        elif first in b"{[":
            if (
                first == b"{"
                and cell is None
                and path in ([b"{", b'"cells"'], [b"{", b'"worksheets"', b"[", b'"cells"'])
            ):
                cell, cell_depth = RawCell({}), len(path) + 1
            path.append(key if first == b"[" and key else first if path != [b"{", b'"worksheets"'] else b"[")
            key = b""
        else:
            if cell is not None and len(path) == cell_depth:
                cell.end = match.start()
                cells.append(cell)
                cell = None
            if path:
                path.pop()
            key = b""
    return cells


def _is_text(path: list[bytes], key: bytes, cell_depth: int) -> bool:
    """Whether a string stands in a cell's text: as the value of its key or as an element of the list there."""
    if len(path) == cell_depth:
        return key in _TEXT_KEYS
    return len(path) == cell_depth + 1 and path[-1] in _TEXT_KEYS
