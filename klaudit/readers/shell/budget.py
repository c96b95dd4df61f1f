"""How much work one script may cause."""

from __future__ import annotations

from msgspec import Struct


class ExhaustedError(Exception):
    """The script does more than we follow."""


class Budget(Struct):
    """Counts down; `take_*` raise ExhaustedError at the end."""

    steps: int = 60_000
    words: int = 100_000
    characters: int = 20_000_000
    commands: int = 5_000
    runs: int = 64

    def take_step(self, count: int = 1) -> None:
        self.steps -= count
        if self.steps < 0:
            raise ExhaustedError("too many steps")

    def take_words(self, count: int) -> None:
        self.words -= count
        if self.words < 0:
            raise ExhaustedError("too many words")

    def take_characters(self, count: int) -> None:
        self.characters -= count
        if self.characters < 0:
            raise ExhaustedError("expansions too large")

    def take_command(self) -> None:
        self.commands -= 1
        if self.commands < 0:
            raise ExhaustedError("too many commands")
