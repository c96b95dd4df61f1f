"""A launch: one thing in the tree that trains, or configures a training, of a known framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, field

from klaudit.frameworks.rules import EntryPoint, Framework, Trainer
from klaudit.model import FrameworkVersion, Setting, SetupKind, Span
from klaudit.readers.document import Word


class Configuration(Protocol):
    """What a configuration system made of defaults, files and overrides: the effective settings, each with its place."""

    @property
    def refusals(self) -> Sequence[tuple[str, str]]:
        """Why the program stops before training: `(name of the setting, reason)`, the name empty for the program as a whole."""

    def get(self, name: str) -> Setting | None:
        """The effective setting of a dotted name or flag; None where nothing in the tree sets it."""

    def given(self, name: str) -> tuple[Setting, ...]:
        """What was set for this name by hand (overrides, keywords, keys of the file itself), in order; the last one counts."""

    def explicit_names(self) -> Sequence[str]:
        """The names of all that was set by hand, in order."""


class Launch(Struct, frozen=True):
    """`target` is the module, script, program, class or file that identifies it; `config_name` the primary config, where there is one.

    `head` is the place that stands for the launch as a whole (the entry point's word, the class name, the file's first key).
    """

    framework: Framework
    trainer: Trainer
    entry_point: EntryPoint | None
    kind: SetupKind
    target: str
    config_name: str
    head: Span
    symbol: str
    assumes: tuple[str, ...]
    configuration: Configuration
    imports: tuple[str, ...]
    version: FrameworkVersion
    stray: tuple[Word, ...] = field(default=())  # what stands below the command as if it belonged to it
    words: tuple[Word, ...] = field(default=())  # the arguments of the command, in order
