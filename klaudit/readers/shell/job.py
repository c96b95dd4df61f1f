"""One call of a text tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from klaudit.readers.shell.call import Call
from klaudit.readers.shell.text import Text, at_place, plain

if TYPE_CHECKING:
    from klaudit.readers.shell.machine import Machine

_MAX_INPUT = 200_000


class UnsupportedError(ValueError):
    """A use of a tool that is not evaluated: what it prints is unknown."""


class Job(Struct):
    """Its arguments, as characters and with their origin, its input, and whether it succeeded."""

    arguments: list[str]
    fields: list[Text]
    input: Text | None
    machine: Machine
    call: Call
    succeeded: bool = True

    def text(self) -> str:
        """The whole input.  Raises UnsupportedError where there is none that is known."""
        if self.input is None:
            raise UnsupportedError("input not known")
        text = plain(self.input)
        if len(text) > _MAX_INPUT:
            raise UnsupportedError("input too large")
        return text

    def lines(self) -> list[str]:
        lines = self.text().split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    def options(self, with_value: str = "") -> tuple[dict[str, str], list[str]]:
        """Single-letter options and the operands.  Raises UnsupportedError for long options."""
        found: dict[str, str] = {}
        operands: list[str] = []
        arguments = iter(self.arguments)
        for argument in arguments:
            if argument == "--":
                operands += arguments
            elif argument.startswith("--"):
                raise UnsupportedError(argument)
            elif argument.startswith("-") and len(argument) > 1 and not operands:
                for index, letter in enumerate(argument[1:], 2):
                    if letter in with_value:
                        found[letter] = argument[index:] or next(arguments, "")
                        break
                    found[letter] = ""
            else:
                operands.append(argument)
        return found, operands

    def read_files(self, paths: list[str]) -> None:
        """Use the content of these files as input.  Raises UnsupportedError where one is not in the tree."""
        if not paths:
            return
        content: list[Text] = []
        for path in paths:
            text = self.machine.file_text(at_place(path, self.call.place))
            if text is None:
                raise UnsupportedError(path)
            content.append(text)
        self.input = tuple(piece for text in content for piece in text)


def as_lines(texts: Iterable[str]) -> str:
    return "".join([text + "\n" for text in texts])
