"""Jupyter notebooks: Python cells as one program, commands in them as shell, every span mapped to the bytes inside the JSON strings."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Literal

from msgspec import Struct

from klaudit.model import Problem
from klaudit.readers.document import NotebookCell, NotebookDocument, PythonDocument
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.magics import PYTHON_CELL_MAGICS, SHELL_CELL_MAGICS, cell_magic, mask
from klaudit.readers.notebook_json import read_cells
from klaudit.readers.python.reader import read_module
from klaudit.readers.python.syntax import Module, parse
from klaudit.readers.source import Source, UnreadableError

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]"
)  # a surrogate pair is one character
_SIMPLE = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_SHELL_LANGUAGES = ("bash", "sh", "shell", "shellscript", "zsh")

_Kind = Literal["python", "shell", "markdown", "other"]


class _Cell(Struct):
    """A cell's text as bytes `start`..`end` of the text of all cells; a shell or written cell begins at `body`."""

    index: int
    kind: _Kind
    start: int
    end: int
    body: int
    path: str = ""


def read_notebook(source: Source) -> NotebookDocument:
    """The cells of a notebook (nbformat 3 and later) and what they hold.

    A cell that is not Python is left out and reported as a problem.  Raises UnreadableError, with the line, for what is not JSON or
    not a notebook.
    """
    metadata, raw_cells = read_cells(source)
    language = _language(metadata)
    excerpt = Excerpt(source)
    cells: list[_Cell] = []
    starts: list[tuple[int, int]] = []
    for index, raw in enumerate(raw_cells):
        start = len(excerpt)
        for string_start, string_end in raw.strings:
            _decode(source.data, string_start, string_end, excerpt)
        starts.append((start, index))
        cells.append(_classified(excerpt.data, index, raw.value, start, len(excerpt), language))
        excerpt.replace(b"\n", raw.end, raw.end)  # cells must not run into each other
    text = excerpt.embed(cells=starts)
    problems: list[Problem] = []
    shell: list[Source] = [_part(text, cell.body, cell.end) for cell in cells if cell.kind == "shell"]
    python = _python(text, cells, shell, problems)
    shell.sort(key=lambda part: part.span(0, 0).start)
    files = tuple((cell.path, _part(text, cell.body, cell.end)) for cell in cells if cell.path)
    shown = tuple(NotebookCell(cell.index, cell.kind, _part(text, cell.start, cell.end)) for cell in cells)
    return NotebookDocument(source, shown, python, tuple(shell), files, tuple(problems))


def _named(value: object, *path: str) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value.lower() if isinstance(value, str) else ""


def _language(metadata: dict[str, Any]) -> str:
    """The notebook's language; Python where it does not say."""
    kernel, info = _named(metadata, "kernelspec", "language"), _named(metadata, "language_info", "name")
    return kernel or info or _named(metadata, "kernelspec", "name") or "python"


def _classified(data: bytearray, index: int, value: dict[str, Any], start: int, end: int, language: str) -> _Cell:
    kind = _named(value, "cell_type")
    language = _named(value, "metadata", "vscode", "languageId") or _named(value, "language") or language
    if kind == "markdown":
        return _Cell(index, "markdown", start, end, start)
    if kind != "code":
        return _Cell(index, "other", start, end, start)
    if language in _SHELL_LANGUAGES:
        return _Cell(index, "shell", start, end, start)
    if "python" not in language:
        return _Cell(index, "other", start, end, start)
    magic = cell_magic(data, start, end)
    if magic is None or magic.name in PYTHON_CELL_MAGICS:
        return _Cell(index, "python", start, end, start)
    if magic.name in SHELL_CELL_MAGICS:
        return _Cell(index, "shell", start, end, magic.body)
    if magic.name in ("writefile", "file"):
        path = magic.rest.removeprefix("-a ").strip().strip("\"'")
        return _Cell(index, "other", start, end, magic.body, path)
    return _Cell(index, "other", start, end, start)


def _part(text: Source, start: int, end: int) -> Source:
    excerpt = Excerpt(text)
    excerpt.copy(start, end)
    return excerpt.embed()


def _decode(data: bytes, start: int, end: int, excerpt: Excerpt) -> None:
    """Adds the characters of the JSON string whose inside is `start`..`end`."""
    at = start
    for match in _ESCAPE.finditer(data, start, end):
        excerpt.copy(at, match.start())
        excerpt.replace(_unescape(match.group()), match.start(), match.end())
        at = match.end()
    excerpt.copy(at, end)


def _unescape(spelled: bytes) -> bytes:
    letter = spelled[1:2]
    if letter != b"u":
        return _SIMPLE.get(letter, letter)
    code = int(spelled[2:6], 16)
    if len(spelled) > 6:
        code = 0x10000 + ((code - 0xD800) << 10) + (int(spelled[8:12], 16) - 0xDC00)
    return chr(code).encode("utf-8", "replace")  # half a surrogate pair is no character


def _python(text: Source, cells: list[_Cell], shell: list[Source], problems: list[Problem]) -> PythonDocument | None:
    """The Python cells read as one program, without the cells that do not parse."""
    wanted = [cell for cell in cells if cell.kind == "python"]
    if not wanted:
        return None
    try:
        module = _together(text, wanted, shell)
        if module is not None:
            return read_module(module)
    except UnreadableError:
        pass
    sound = []
    for cell in wanted:
        try:
            _together(text, [cell], [])
            sound.append(cell)
        except UnreadableError as error:
            problems.append(Problem(text.path, error.line, f"cell {cell.index}: {error}"))
    try:
        module = _together(text, sound, [])
        return read_module(module) if module is not None else None
    except UnreadableError as error:
        problems.append(Problem(text.path, error.line, str(error)))
        return None


def _together(text: Source, cells: list[_Cell], shell: list[Source]) -> Module | None:
    """The cells as one module; None where a statement runs from one cell into another.  Commands in them go to `shell`."""
    python = Excerpt(text)
    starts: list[int] = []
    commands: list[Source] = []
    for cell in cells:
        starts.append(len(python))
        body = cell.start
        magic = cell_magic(text.data, cell.start, cell.end)
        if magic is not None:
            python.replace(b"pass\n", cell.start, magic.body)
            body = magic.body
        mask(text, body, cell.end, python, commands)
        python.replace(b"\n", cell.end, cell.end)
    if len(shell) == 0 or commands:
        shell.extend(commands)
    module = parse(python.embed())
    for statement in module.tree.body:
        start, end = module.start(statement), module.end(statement)
        if bisect_right(starts, start) != bisect_right(starts, max(end - 1, start)):
            return None
    return module
