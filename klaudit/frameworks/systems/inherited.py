"""Programs and config files of frameworks whose configs name their parents (see compose/inherit.py)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from klaudit.frameworks.compose.inherit import compose_inherited, parents
from klaudit.frameworks.launch import Configuration
from klaudit.frameworks.programs import Programs
from klaudit.frameworks.recognise import ProgramMatch, iter_keys
from klaudit.frameworks.rules import Trainer
from klaudit.frameworks.systems.layered import Unseen
from klaudit.frameworks.systems.options import split_options
from klaudit.model import Span
from klaudit.readers.document import TreeDocument
from klaudit.readers.invocation import Invocation
from klaudit.tree import Tree


class InheritedConfigurer:
    def __init__(self, tree: Tree, programs: Programs) -> None:
        self._tree = tree
        self._programs = programs

    def of_program(self, match: ProgramMatch, invocation: Invocation, path: str) -> tuple[Configuration, str]:
        """What `--config FILE` and Hydra's overrides give, and the config's name; without the option, the config beside the program."""
        entry = match.entry_point
        option = entry.config_flag
        options, overrides = split_options(invocation.arguments, (option,))
        given = options.get(option)
        if given is None:
            program = self._programs.file(invocation, path)
            bases = [] if program is None else [posixpath.dirname(program)]
        else:
            bases = [invocation.directory or ".", ".", posixpath.dirname(path)]
        wanted = entry.config if given is None else given
        file = self._file(wanted, bases)
        configuration = compose_inherited(self._tree, file, overrides, environment=dict(invocation.environment))
        unseen = [each.config for each in configuration.unseen] if file is not None else [wanted]
        return _honest(configuration, unseen, match.trainer, invocation.target_word.site), _name(wanted)

    def of_file(self, trainer: Trainer, document: TreeDocument) -> Configuration | None:
        """What a config file and its parents give; None where the trainer's configs have none."""
        if document.source.parent is not None or not any(entry.system == "inherit" for entry in trainer.entry_points):
            return None
        configuration = compose_inherited(self._tree, document.source.path, ())
        unseen = [each.config for each in configuration.unseen]
        return _honest(configuration, unseen, trainer, document.source.span(0, 0))

    def keys(self, document: TreeDocument) -> frozenset[str]:
        """All dotted names that a file has, from its parents too; empty where it names none."""
        if document.source.parent is not None or not parents(document.root):
            return frozenset()
        return frozenset(iter_keys(compose_inherited(self._tree, document.source.path, ()).names()))

    def _file(self, given: str, bases: Sequence[str]) -> str | None:
        """A file named on the command line: relative to one of `bases`, or an ending of its path that the tree holds."""
        for base in bases:
            path = posixpath.normpath(posixpath.join(base, given))
            if given and not given.startswith("/") and self._tree.is_file(path):
                return path
        parts = posixpath.normpath(given).strip("/").split("/")
        endings = ("/".join(parts[at:]) for at in range(len(parts) - 1))  # a bare name is too little to know a file by
        return next((path for path in endings if self._tree.is_file(path)), None)


def _honest(configuration: Configuration, unseen: Sequence[str], trainer: Trainer, place: Span) -> Configuration:
    """What lies in a file outside the tree is unknown, unless the rules know it: the config that a program reads of itself."""
    shipped = {_name(entry.config) for entry in trainer.entry_points}
    unknown = next((config for config in unseen if _name(config) not in shipped), None)
    return (
        configuration if unknown is None else Unseen(configuration, f"the config {unknown or 'of the command'}", place)
    )


def _name(config: str) -> str:
    return posixpath.splitext(posixpath.basename(config))[0]
