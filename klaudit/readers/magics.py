"""IPython's own lines in a Python cell: `!command`, `%magic`, `name?`, and cells that a `%%magic` hands to something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from klaudit.readers.excerpt import Excerpt
from klaudit.readers.python.lexer import LexError, StringToken, lexemes
from klaudit.readers.python.shell_text import placeholder, quote_state
from klaudit.readers.source import Source

PYTHON_CELL_MAGICS = frozenset({"capture", "time", "timeit", "prun", "python", "python3", "memit", "skip"})
SHELL_CELL_MAGICS = frozenset({"bash", "sh", "shell", "zsh", "!", "cmd"})
_MAGIC = re.compile(rb"[ \t]*(?:(?P<bang>!!?)|(?P<percent>%{1,2})|\?)")
_ASSIGNED = re.compile(rb"(?P<target>[\w.,\[\]\"' \t]+=[ \t]*)(?P<bang>!|%)(?=[\w./~$\"'(])")
_HELP = re.compile(rb"[ \t]*[\w.]+\?{1,2}[ \t]*(?:#.*)?\Z")
_TIMED = re.compile(rb"%(?:time|timeit|prun|memit)[ \t]+(?=[^\s-])")
_RUN = re.compile(rb"%run[ \t]+(?=[\w./-])")
_INTERPOLATED = re.compile(rb"(?<!\$)\{(?P<name>[A-Za-z_][\w.]*(?:\[[^\]{}]*\]|\([^(){}]*\))?)\}")
_CELL_MAGIC = re.compile(
    rb"\s*%%(?P<name>[\w!]+)(?P<rest>[^\r\n]*)(?:\r?\n|\Z)|\s*%(?P<databricks>sh|bash|md|sql|r|scala)[ \t]*\r?\n"
)


class CellMagic(NamedTuple):
    """The magic on a cell's first line; the rest of the cell begins at `body`."""

    name: str
    rest: str
    body: int


def cell_magic(data: bytes | bytearray, start: int, end: int) -> CellMagic | None:
    """The magic that takes a whole cell, if its first line has one."""
    match = _CELL_MAGIC.match(data, start, end)
    if match is None:
        return None
    name = (match["name"] or match["databricks"]).decode("ascii", "replace")
    rest = (match["rest"] or b"").decode("utf-8", "replace").strip()
    if name == "script":
        name, _, rest = rest.partition(" ")
    return CellMagic(name, rest, match.end())


def mask(text: Source, start: int, end: int, python: Excerpt, shell: list[Source]) -> None:
    """Copies bytes `start`..`end` of a cell to `python` with IPython's lines masked; the commands in them go to `shell`."""
    data = text.data
    for at, line_end in _logical_lines(data, start, end):
        line = data[at:line_end].rstrip(b"\r\n")
        content_end = at + len(line)
        match = _MAGIC.match(line)
        if match is not None:
            indent = len(line) - len(line.lstrip(b" \t"))
            _magic_line(text, at + indent, content_end, python, shell, at)
        elif (assigned := _ASSIGNED.match(line)) is not None and b"=" not in assigned["target"].rstrip()[:-1]:
            python.copy(at, at + assigned.end("target"))
            python.replace(b"None", at + assigned.start("bang"), content_end)
            if assigned["bang"] == b"!":
                shell.append(command(text, at + assigned.end("bang"), content_end))
        elif _HELP.match(line) is not None:
            python.replace(b"pass", at, content_end)
        else:
            python.copy(at, content_end)
        python.copy(content_end, line_end)


def command(text: Source, start: int, end: int) -> Source:
    """A command line as a source for the shell reader; `{name}` is Python's and cannot be known there."""
    data = text.data
    excerpt = Excerpt(text)
    at, quote = start, ""
    for match in _INTERPOLATED.finditer(data, start, end):
        excerpt.copy(at, match.start())
        quote = quote_state(data[at : match.start()].decode("utf-8", "replace"), quote)
        excerpt.replace(placeholder((match["name"].decode("utf-8", "replace"),), quote), match.start(), match.end())
        at = match.end()
    excerpt.copy(at, end)
    return excerpt.embed()


def _magic_line(text: Source, at: int, end: int, python: Excerpt, shell: list[Source], line_start: int) -> None:
    line = text.data[at:end]
    python.copy(line_start, at)
    if line.startswith(b"!"):
        shell.append(command(text, at + (2 if line.startswith(b"!!") else 1), end))
    elif (timed := _TIMED.match(line)) is not None:
        python.copy(at + timed.end(), end)
        return
    elif (run := _RUN.match(line)) is not None:
        excerpt = Excerpt(text)
        excerpt.replace(b"python ", at, at + run.end())
        excerpt.copy(at + run.end(), end)
        shell.append(excerpt.embed())
    python.replace(b"pass", at, end)


def _logical_lines(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Statements' lines, with what brackets, strings and backslashes join to them; a magic line ends where its backslashes end."""
    at = start
    while at < end:
        stop = (
            _magic_end(data, at, end)
            if _MAGIC.match(data, at, end) or _ASSIGNED.match(data, at, end)
            else _statement_end(data, at, end)
        )
        yield at, stop
        at = stop


def _magic_end(data: bytes, at: int, end: int) -> int:
    while True:
        newline = data.find(b"\n", at, end)
        if newline == -1:
            return end
        if not data[at:newline].rstrip(b"\r").endswith(b"\\"):
            return newline + 1
        at = newline + 1


def _statement_end(data: bytes, at: int, end: int) -> int:
    depth = 0
    try:
        for token in lexemes(data, at, end):
            if isinstance(token, StringToken):
                continue
            if token.kind == "bracket":
                depth += 1 if data[token.start] in b"([{" else -1
            elif token.kind == "newline" and depth <= 0:
                return token.end
    except LexError:
        pass  # the cell is broken from here on, which its parser will say
    return end
