"""A position in code and the instructions made of what is before it."""

from __future__ import annotations

import re
from typing import TypeVar

from klaudit.readers.shell.code import Code
from klaudit.readers.shell.program import Instruction, Return, Stage, Subshell, insert

_I = TypeVar("_I", bound=Instruction)

_NAME = re.compile(r"[^\s;&|()<>]+")
_BLANKS = re.compile(r"(?:[ \t]|\\\r?\n|\r(?=\n))*")
_BETWEEN = re.compile(r"(?:[ \t\r]|\\\r?\n|#[^\n]*)*")


class UnreadableStatementError(Exception):
    """A statement that breaks the grammar at `position`."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class Cursor:
    """Moves through the text of `code` and collects instructions in `out`."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.text = code.text
        self.at = 0
        self.out: list[Instruction] = []

    def add(self, instruction: _I) -> _I:
        self.out.append(instruction)
        return instruction

    def wrap(self, start: int, end: int, opener: Subshell | Stage) -> None:
        """Make the instructions `start`..`end` the inside of `opener`."""
        insert(self.out, end, Return())
        insert(self.out, start, opener)
        opener.end = end + 2

    def skip_blanks(self) -> int:
        blanks = _BLANKS.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at
        return self.at

    def skip_between(self) -> bool:
        """Pass blanks, comments, line ends, and the heredocs that follow these.  Whether the text is at its end."""
        while True:
            between = _BETWEEN.match(self.text, self.at)
            self.at = between.end() if between else self.at
            if not self.text.startswith("\n", self.at):
                return self.at >= len(self.text)
            self.at = self.next_line(self.at)

    def next_line(self, position: int) -> int:
        end = self.text.find("\n", position)
        return len(self.text) if end == -1 else self.code.heredocs.get(end, end + 1)

    def take_name(self) -> str:
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise self.unexpected()
        self.at = name.end()
        return name.group()

    def after(self, end: int, closer: str) -> int:
        if not self.text.startswith(closer, end):
            raise UnreadableStatementError(self.at, f"{closer} is missing")
        return end + len(closer)

    def unexpected(self) -> UnreadableStatementError:
        word = _NAME.match(self.text, self.at)
        shown = word.group()[:20] if word else self.text[self.at : self.at + 1].replace("\n", "end of line")
        return UnreadableStatementError(self.at, f"unexpected {shown}" if shown else "unexpected end of the script")
