"""The configuration of a program or of a config file, by the system that its framework uses."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from klaudit.frameworks.classes import Classes
from klaudit.frameworks.compose.configuration import Configuration as HydraConfiguration
from klaudit.frameworks.compose.hydra import compose_hydra
from klaudit.frameworks.detect import Detector
from klaudit.frameworks.launch import Configuration
from klaudit.frameworks.programs import Programs
from klaudit.frameworks.recognise import FileMatch, ProgramMatch
from klaudit.frameworks.rules import Name, Trainer
from klaudit.frameworks.systems.config_files import read_config_file
from klaudit.frameworks.systems.dotlist import dotlist_configuration
from klaudit.frameworks.systems.flags import flags_configuration
from klaudit.frameworks.systems.inherited import InheritedConfigurer
from klaudit.frameworks.systems.keys import file_settings
from klaudit.frameworks.systems.layered import LayeredConfiguration, Refused, Unseen
from klaudit.frameworks.systems.options import flag_value, split_options, value_of_key
from klaudit.frameworks.systems.own_defaults import OwnDefaults
from klaudit.frameworks.versions import parse_version
from klaudit.model import FrameworkVersion, Span
from klaudit.readers.document import TreeDocument, Word
from klaudit.readers.invocation import Invocation
from klaudit.tree import Tree


class ProgramConfigurer:
    def __init__(
        self,
        tree: Tree,
        detector: Detector,
        programs: Programs,
        classes: Classes,
        packaged_keys: Mapping[str, frozenset[str]],
    ) -> None:
        self._tree = tree
        self._detector = detector
        self._programs = programs
        self._own = OwnDefaults(tree, classes)
        self._packaged_keys = packaged_keys
        self._inherited = InheritedConfigurer(tree, programs)

    def configure(
        self, match: ProgramMatch, invocation: Invocation, path: str, version: FrameworkVersion
    ) -> tuple[Configuration, str]:
        """The effective configuration of a command, and the name of its primary config where it has one."""
        entry = match.entry_point
        if entry.system == "hydra":
            return self._hydra(match, invocation, path, version)
        if entry.system == "inherit":
            return self._inherited.of_program(match, invocation, path)
        root = self._detector.vendored_root(match.framework, path)
        base = dict(self._own.of(match.trainer, root, version, invocation.target))
        base.update((setting.name, setting) for setting in match.defaults)
        words = invocation.arguments
        option = entry.config_flag
        named = value_of_key if entry.system == "dotlist" else flag_value
        bases = (invocation.directory or ".", ".", posixpath.dirname(path))
        file = read_config_file(self._tree, named(words, option) if option else None, bases)
        below = {} if file.unseen else base | {setting.name: setting for setting in file.settings}
        given = (
            dotlist_configuration(words, below)
            if entry.system == "dotlist"
            else flags_configuration(match.trainer, words, below)
        )
        configuration = file.under(given, invocation.target_word.site)
        missing = self._own.undeclared(match.trainer, root, version, invocation.target)
        return Refused(configuration, missing[1], missing[0]) if missing is not None else configuration, ""

    def _hydra(
        self, match: ProgramMatch, invocation: Invocation, path: str, version: FrameworkVersion
    ) -> tuple[Configuration, str]:
        options, overrides = split_options(invocation.arguments)
        entry = match.entry_point
        name = options.get("--config-name", "") or entry.config
        folders: list[str] = []
        root = self._detector.vendored_root(match.framework, path)
        program = self._programs.file(invocation, path)
        main = self._programs.hydra_main(program) if program is not None else None
        home = posixpath.dirname(program) if program is not None else None
        if main is not None:
            name = options.get("--config-name", "") or main.config_name or name
        is_own = bool(options)  # the user's own config: what it holds is known only where the tree holds it
        if given := options.get("--config-path", ""):
            folders.append(self._folder(given, [home, invocation.directory, ".", posixpath.dirname(path)]))
        elif main is not None and main.folder and self._tree.is_folder(main.folder):
            folders.append(main.folder)
        elif entry.folder:
            folders.append(posixpath.normpath(posixpath.join(root or "", entry.folder)))
        if given := options.get("--config-dir", ""):
            folders.append(self._folder(given, [invocation.directory, ".", posixpath.dirname(path)]))
        name = name.removesuffix(".yaml")
        configuration = compose_hydra(
            self._tree,
            folders,
            name,
            overrides,
            is_multirun=any(word.text in ("-m", "--multirun") for word in invocation.arguments),
            directory=invocation.directory,
            environment=dict(invocation.environment),
            packaged=self._packaged_keys,
        )
        if configuration.unseen:
            return self._with_unseen(configuration, match, name, folders, overrides, version, is_own, invocation), name
        return configuration, name

    def _with_unseen(
        self,
        configuration: HydraConfiguration,
        match: ProgramMatch,
        name: str,
        folders: Sequence[str],
        overrides: Sequence[Word],
        version: FrameworkVersion,
        is_own: bool,
        invocation: Invocation,
    ) -> Configuration:
        """A configuration of which a part is not in the tree: it does not exist, is the user's own, or comes with the framework."""
        is_primary = configuration.unseen[0].config == name
        if is_own and is_primary and name and folders and all(map(self._tree.is_folder, folders)):
            return Refused(configuration, f"there is no config {name} in {', '.join(folders)}")
        if is_own and is_primary and not _is_shipped(match, name, version):
            return Unseen(configuration, f"the config {name or 'of the command'}", invocation.target_word.site)
        refusal = _refused_prefix(match.trainer, overrides, version)
        return Refused(configuration, *refusal) if refusal else configuration

    def _folder(self, given: str, bases: Sequence[str | None]) -> str:
        """A folder named on the command line: relative to any of `bases`, or the ending of an absolute path that the tree holds."""
        for base in bases:
            if base is not None and not given.startswith("/"):
                path = posixpath.normpath(posixpath.join(base, given))
                if self._tree.is_folder(path):
                    return path
        parts = given.strip("/").split("/")
        for at in range(len(parts)):
            path = "/".join(parts[at:])
            if path and not path.startswith("..") and self._tree.is_folder(path):
                return path
        return given.lstrip("/")

    def file(self, match: FileMatch, document: TreeDocument, version: FrameworkVersion) -> tuple[Configuration, Span]:
        """The configuration of a config file by itself, and its head: the first key that marks it."""
        settings = file_settings(document)
        marks = set(match.signature.any_of) | set(match.signature.all_of)
        head = next((setting.span for setting in settings if setting.name in marks), None)
        configuration = self._inherited.of_file(match.trainer, document) or LayeredConfiguration(settings)
        return configuration, head or document.source.span(0, 0)

    def inherited_keys(self, document: TreeDocument) -> frozenset[str]:
        """All dotted names that a config file has from its parents."""
        return self._inherited.keys(document)


def _is_shipped(match: ProgramMatch, name: str, version: FrameworkVersion) -> bool:
    """Whether a primary config of that name comes with the framework, so that the rules tell what it holds."""
    entry, release = match.entry_point, parse_version(version.value)
    if name == entry.config or any(name == each.name and release in each.versions for each in entry.configs):
        return True
    defaults = (default for spec in match.trainer.settings.values() for default in spec.defaults)
    return any(name in each.config and release in each.versions for each in defaults)


def _refused_prefix(trainer: Trainer, overrides: Iterable[Word], version: FrameworkVersion) -> tuple[str, str] | None:
    """The first setting that is added although the config has it, or set although it does not: `(reason, setting)`."""
    release = parse_version(version.value)
    exists: dict[str, bool] = {}
    for spec in trainer.settings.values():
        default = next((each for each in spec.defaults if release in each.versions), None)
        for name in spec.names:
            present = release in name.versions and default is not None and not default.fixed and default.when is None
            exists[name.name] = exists.get(name.name, False) or present
    for word in overrides:
        text = word.shown
        key = text.partition("=")[0]
        if text.startswith("~"):
            exists.update(dict.fromkeys((each for each in exists if f"{each}.".startswith(f"{key[1:]}.")), False))
            continue
        if text.startswith("++"):
            continue
        if text.startswith("+") and exists.get(key[1:]):
            return f"{key[1:]} is already in the config of {version.value}: it takes no + there", key[1:]
        if exists.get(key) is False and not any(release in name.versions for name in _spellings(trainer, key)):
            return f"there is no {key} in the config of {version.value}", key
    return None


def _spellings(trainer: Trainer, key: str) -> list[Name]:
    return [name for spec in trainer.settings.values() for name in spec.names if name.name == key]
