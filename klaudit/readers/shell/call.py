"""A command about to run."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.text import Place, plain
from klaudit.readers.shell.words import Assignment, SimpleCommand, Word


class Call(Struct, frozen=True):
    """Its fields, program first, with the word that each comes from.  A declared assignment has an empty field (see declarations)."""

    command: SimpleCommand
    expander: Expander
    fields: list[Field]
    origins: list[Word | Assignment]
    tested: bool

    @property
    def name(self) -> str:
        return plain(self.fields[0].text)

    @property
    def arguments(self) -> list[str]:
        return [plain(field.text) for field in self.fields[1:]]

    @property
    def place(self) -> Place:
        return self.expander.code.place(self.command.start, self.command.words_end)

    @property
    def sites(self) -> list[Place]:
        """Where each field is used."""
        code = self.expander.code
        return [code.place(word.start, word.end) for word in self.origins]

    def without_first(self, count: int) -> Call:
        return replace(self, fields=self.fields[count:], origins=self.origins[count:])
