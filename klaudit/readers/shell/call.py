"""A command about to run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.text import Place, plain
from klaudit.readers.shell.words import SimpleCommand


@dataclass(frozen=True, slots=True)
class Call:
    """Its fields, program first, with the place where each is used.  A declared assignment has an empty field (see declarations)."""

    command: SimpleCommand
    expander: Expander
    fields: list[Field]
    sites: list[Place]
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

    def without_first(self, count: int) -> Call:
        return replace(self, fields=self.fields[count:], sites=self.sites[count:])
