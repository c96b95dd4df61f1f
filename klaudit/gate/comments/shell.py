"""Comments and command lines of shell, from the grammar's own reading of the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from klaudit.gate.comments.pieces import Piece, Range
from klaudit.readers.shell.code import Code
from klaudit.readers.shell.parse import parse
from klaudit.readers.shell.program import Case, Evaluate, ForEach, Program, Redirected, Run
from klaudit.readers.shell.text import from_bytes
from klaudit.readers.shell.words import Assignment, SimpleCommand, Substitution, Word
from klaudit.readers.source import Source

_MAX_BYTES = 4_000_000  # what the reader takes
_MAX_NESTING = 10  # substitutions inside substitutions
_COMMENT = re.compile(r"(?<![^\s;&|()])#[^\n]*")
_MARKER = "klaudit:"
_GOES_ON = re.compile(r"(?:\|\|?|&&)[ \t\r]*\Z")


def shell_piece(source: Source) -> Piece:
    """The source as a piece; nothing is found in what no shell would read."""
    if len(source.data) > _MAX_BYTES or b"\0" in source.data:
        return Piece(source, [], [])
    code = Code(from_bytes(source.data), source)
    reading = _Reading(code, parse(code))
    lines, bodies = _lines(reading)
    return Piece(source, sorted(_comments(reading, 0, 0)), lines, bodies=bodies)


class _Reading:
    """What the commands of a code occupy.  `commands` are (start, end), `taken` all that cannot be a comment."""

    def __init__(self, code: Code, program: Program) -> None:
        self.text = code.text
        self.code = code
        self.commands: list[Range] = []
        self.words: list[Word] = []
        self.arrays: list[Assignment] = []
        others: list[Range] = []
        for each in program.instructions:
            if isinstance(each, Run):
                self.commands.append((each.command.start, max(each.command.end, each.command.words_end)))
                self._command(each.command)
            elif isinstance(each, Evaluate):
                others.append(each.inner)
            elif isinstance(each, ForEach):
                others += [(word.start, word.end) for word in each.words or ()]
            elif isinstance(each, Case):
                others += [(word.start, word.end) for word in _words_of(each)]
            elif isinstance(each, Redirected):
                others += [(redirect.target.start, redirect.target.end) for redirect in each.redirects]
        self.commands.sort()
        self.heredocs = {line: end for line, end in code.heredocs.items() if end > line}
        self.taken = _merged([*self.commands, *others, *((line + 1, end) for line, end in self.heredocs.items())])

    def _command(self, command: SimpleCommand) -> None:
        for item in (*command.assignments, *command.words):
            if isinstance(item, Assignment):
                self.words.append(item.value)
                if item.elements is not None:
                    self.arrays.append(item)
                    self.words += [element.value for element in item.elements]
            else:
                self.words.append(item)


def _words_of(case: Case) -> Iterator[Word]:
    yield case.subject
    for patterns, _ in case.arms:
        yield from patterns


def _comments(reading: _Reading, base: int, depth: int) -> Iterator[Range]:
    """Between commands, between the elements of arrays, and inside `$(...)`."""
    yield from _in_gaps(reading.text, reading.taken, 0, len(reading.text), base)
    for array in reading.arrays:
        if _MARKER in reading.text[array.start : array.end]:
            elements = [(element.key or element.value, element.value) for element in array.elements or ()]
            inside = _merged([(first.start, last.end) for first, last in elements])
            opened = reading.text.find("(", array.start, array.end) + 1
            yield from _in_gaps(reading.text, inside, opened, array.end, base)
    for word in reading.words if depth < _MAX_NESTING else ():
        for part in word.parts:
            if isinstance(part, Substitution) and part.kind != "`" and _MARKER in reading.text[slice(*part.inner)]:
                code = reading.code.part(*part.inner)
                yield from _comments(_Reading(code, parse(code)), base + part.inner[0], depth + 1)


def _in_gaps(text: str, taken: list[Range], start: int, end: int, base: int) -> Iterator[Range]:
    at = start
    for first, last in [*taken, (end, end)]:
        if first >= at:
            for match in _COMMENT.finditer(text, at, min(first, end)):
                stop = match.end() - (text[match.end() - 1] == "\r")
                yield base + match.start(), base + stop
        at = max(at, last)


def _lines(reading: _Reading) -> tuple[list[Range], dict[Range, int]]:
    """Command lines: commands with no line end between them, or one after `&&`, `||` or `|`; and how far their heredocs reach."""
    lines: list[Range] = []
    for start, end in reading.commands:
        if lines and (start < lines[-1][1] or _goes_on(reading, lines[-1][1], start)):
            lines[-1] = (lines[-1][0], max(lines[-1][1], end))
        else:
            lines.append((start, end))
    bodies = {}
    for line in lines:
        newline = reading.text.find("\n", line[1])
        if newline in reading.heredocs:
            bodies[line] = reading.heredocs[newline]
    return lines, bodies


def _goes_on(reading: _Reading, end: int, start: int) -> bool:
    """Whether a command line that has come to `end` goes on at `start`."""
    *ended, _ = reading.text[end:start].split("\n")
    return all(_GOES_ON.search(_COMMENT.sub("", line)) or line.rstrip("\r").endswith("\\") for line in ended)


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """Sorted, those that touch or overlap as one."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
