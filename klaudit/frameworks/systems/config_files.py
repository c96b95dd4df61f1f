"""The config file that a command names by an option, under what else it sets."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from msgspec import Struct

from klaudit.frameworks.launch import Configuration
from klaudit.frameworks.systems.keys import file_settings, read_keys
from klaudit.frameworks.systems.layered import Refused, Unseen
from klaudit.frameworks.systems.options import known_end
from klaudit.model import Setting, Span
from klaudit.readers.document import Word
from klaudit.readers.source import UnreadableError
from klaudit.tree import TooLargeError, Tree


class ConfigFile(Struct, frozen=True):
    """What a config file sets.  `unseen` names one whose content cannot be known, `refused` says why one stops the program."""

    settings: tuple[Setting, ...] = ()
    unseen: str = ""
    refused: str = ""

    def under(self, configuration: Configuration, place: Span) -> Configuration:
        """A configuration that stands on this file, with what follows where the file could not be read."""
        if self.refused:
            return Refused(configuration, self.refused)
        return Unseen(configuration, self.unseen, place) if self.unseen else configuration


def read_config_file(tree: Tree, given: Word | None, bases: Sequence[str]) -> ConfigFile:
    """The file that `given` names, relative to one of `bases`; no settings where the command names none."""
    if given is None or given.text == "":
        return ConfigFile()
    path = _find(tree, given, bases)
    if path is None:
        return ConfigFile(unseen=f"the config {given.shown}")
    try:
        source = tree.source(path)
        if source is None:
            return ConfigFile(unseen=f"the config {path}")
        return ConfigFile(tuple(setting for document in read_keys(source) for setting in file_settings(document)))
    except UnreadableError as error:
        line = f", line {error.line}" if error.line else ""
        return ConfigFile(refused=f"the config {path} cannot be read: {error}{line}")
    except (TooLargeError, OSError):
        return ConfigFile(unseen=f"the config {path}")


def _find(tree: Tree, given: Word, bases: Sequence[str]) -> str | None:
    """The file of that name, or one that the tree holds at the ending of an absolute or partly unknown path."""
    if given.text is not None and not given.text.startswith("/"):
        paths = [posixpath.normpath(posixpath.join(base, given.text)) for base in bases]
        return next((path for path in paths if tree.is_file(path)), None)
    parts = posixpath.normpath(known_end(given)).strip("/").split("/")
    endings = ("/".join(parts[at:]) for at in range(len(parts) - 1))  # a bare name is too little to know a file by
    return next((path for path in endings if not path.startswith("..") and tree.is_file(path)), None)
