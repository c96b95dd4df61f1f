"""The configuration of a program or of a config file, by the system that its framework uses."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from klaudit.frameworks.classes import Classes
from klaudit.frameworks.compose.configuration import Configuration as HydraConfiguration
from klaudit.frameworks.compose.hydra import compose_hydra
from klaudit.frameworks.compose.inherit import compose_inherited
from klaudit.frameworks.detect import Detector
from klaudit.frameworks.launch import Configuration
from klaudit.frameworks.programs import Programs
from klaudit.frameworks.recognise import FileMatch, ProgramMatch
from klaudit.frameworks.rules import Name, Trainer
from klaudit.frameworks.systems.dotlist import dotlist_configuration
from klaudit.frameworks.systems.flags import flags_configuration
from klaudit.frameworks.systems.keys import file_settings, read_keys
from klaudit.frameworks.systems.layered import LayeredConfiguration, Refused, Unseen
from klaudit.frameworks.systems.own_defaults import OwnDefaults
from klaudit.frameworks.versions import parse_version
from klaudit.model import FrameworkVersion, Setting, Span
from klaudit.readers.document import TreeDocument, Word
from klaudit.readers.invocation import Invocation
from klaudit.readers.words import partition
from klaudit.tree import Tree

_OPTIONS_WITH_VALUE = (
    "--config-name",
    "--config-path",
    "--config-dir",
    "-cn",
    "-cp",
    "-cd",
    "--package",
    "--experimental-rerun",
)


class ProgramConfigurer:
    def __init__(self, tree: Tree, detector: Detector, programs: Programs, classes: Classes) -> None:
        self._tree = tree
        self._detector = detector
        self._programs = programs
        self._own = OwnDefaults(tree, classes)

    def configure(
        self, match: ProgramMatch, invocation: Invocation, path: str, version: FrameworkVersion
    ) -> tuple[Configuration, str]:
        """The effective configuration of a command, and the name of its primary config where it has one."""
        entry = match.entry_point
        if entry.system == "hydra":
            return self._hydra(match, invocation, path, version)
        if entry.system == "inherit":
            return self._inherit(match, invocation, path)
        root = self._detector.vendored_root(match.framework, path)
        base = dict(self._own.of(match.trainer, root, version, invocation.target))
        if entry.system == "dotlist":
            words = invocation.arguments
            file = self._config_file(_value_of(words, entry.config_flag), invocation, path) if entry.config_flag else ()
            return dotlist_configuration(words, base | {setting.name: setting for setting in file}), ""
        file = (
            self._config_file(_flag_value(invocation.arguments, entry.config_flag), invocation, path)
            if entry.config_flag
            else ()
        )
        return flags_configuration(
            match.trainer, invocation.arguments, base | {setting.name: setting for setting in file}
        ), ""

    def _config_file(self, name: str | None, invocation: Invocation, path: str) -> Sequence[Setting]:
        """The keys of a config file named among the arguments; empty where the tree does not hold it."""
        if not name:
            return ()
        for folder in (invocation.directory or ".", ".", posixpath.dirname(path)):
            candidate = posixpath.normpath(posixpath.join(folder, name))
            source = self._tree.source(candidate) if self._tree.is_file(candidate) else None
            if source is not None:
                return [setting for document in read_keys(source) for setting in file_settings(document)]
        return ()

    def _hydra(
        self, match: ProgramMatch, invocation: Invocation, path: str, version: FrameworkVersion
    ) -> tuple[Configuration, str]:
        options, overrides = _split(invocation.arguments)
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
        if is_own and is_primary and folders and all(map(self._tree.is_folder, folders)):
            return Refused(configuration, f"there is no config {name} in {', '.join(folders)}")
        defaults = (default for spec in match.trainer.settings.values() for default in spec.defaults)
        if (
            is_own
            and is_primary
            and name != match.entry_point.config
            and not any(name in each.config for each in defaults)
        ):
            return Unseen(configuration, f"the config {name}", invocation.target_word.site)
        refusal = _refused_prefix(match.trainer, overrides, version)
        return Refused(configuration, *refusal) if refusal else configuration

    def _inherit(self, match: ProgramMatch, invocation: Invocation, path: str) -> tuple[Configuration, str]:
        """`--config FILE` and Hydra's overrides; without the option, the config that lies beside the program."""
        entry = match.entry_point
        options, overrides = _split(invocation.arguments, (f"--{entry.config_flag}",) if entry.config_flag else ())
        given = options.get(f"--{entry.config_flag}")
        program = self._programs.file(invocation, path)
        home = posixpath.dirname(program) if program is not None else ""
        bases = [home] if given is None else [invocation.directory or ".", ".", posixpath.dirname(path)]
        file = self._file(given or entry.config, bases)
        configuration = compose_inherited(self._tree, file, overrides, environment=dict(invocation.environment))
        name = posixpath.basename(given or entry.config).rpartition(".")[0]
        is_shipped = name == posixpath.basename(entry.config).rpartition(".")[0]
        unseen = [each.config for each in configuration.unseen if posixpath.basename(each.config) != f"{name}.yaml"]
        if given is not None and file is None and not is_shipped:
            return Unseen(configuration, f"the config {given or 'that the command names'}", invocation.target_word.site), name
        if unseen and not _are_shipped(match.trainer, unseen):
            return Unseen(configuration, f"the config {unseen[0]}", invocation.target_word.site), name
        return configuration, name

    def _file(self, given: str, bases: Sequence[str]) -> str | None:
        """A file named on the command line: relative to one of `bases`, or the longest ending of the path that the tree holds."""
        for base in bases:
            path = posixpath.normpath(posixpath.join(base, given))
            if not given.startswith("/") and self._tree.is_file(path):
                return path
        parts = posixpath.normpath(given).strip("/").split("/")
        endings = ("/".join(parts[at:]) for at in range(len(parts) - 1))  # a name alone is too little to know a file by
        return next((path for path in endings if path and self._tree.is_file(path)), None)

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
        return LayeredConfiguration(settings), head or document.source.span(0, 0)


def _known_end(word: Word) -> str:
    """The text of a word, or of what follows its last unknown part: of `$PWD/config` the `/config`."""
    end = ""
    for piece in reversed(word.pieces):
        if piece.text is None:
            break
        end = piece.text + end
    return end


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
        if text.startswith(("++", "~")):
            continue
        if text.startswith("+") and exists.get(key[1:]):
            return f"{key[1:]} is already in the config of {version.value}: it takes no + there", key[1:]
        if exists.get(key) is False and not any(release in name.versions for name in _spellings(trainer, key)):
            return f"there is no {key} in the config of {version.value}", key
    return None


def _spellings(trainer: Trainer, key: str) -> list[Name]:
    return [name for spec in trainer.settings.values() for name in spec.names if name.name == key]


def _split(words: Iterable[Word]) -> tuple[dict[str, str], list[Word]]:
    """Hydra's own options, and the overrides; a word that is entirely unknown is left to the composer."""
    options: dict[str, str] = {}
    overrides: list[Word] = []
    waiting = ""
    for word in words:
        text = word.text
        shown = word.shown
        if waiting:
            options[waiting] = _known_end(word)
            waiting = ""
        elif shown.startswith("-"):
            name, equals, value = shown.partition("=")
            name = {"-cn": "--config-name", "-cp": "--config-path", "-cd": "--config-dir"}.get(name, name)
            if equals:
                value_word = partition(word, "=")
                options[name] = _known_end(value_word[1]) if value_word else value
            elif name in _OPTIONS_WITH_VALUE:
                waiting = name
        elif "=" in shown or shown.startswith("~") or (text is None and shown):
            overrides.append(word)
    return options, overrides


def _value_of(words: Iterable[Word], key: str) -> str | None:
    """The value of the last `key=value`."""
    found = None
    for word in words:
        name, equals, value = (word.text or "").partition("=")
        if equals and name == key:
            found = value
    return found


def _flag_value(words: Sequence[Word], flag: str) -> str | None:
    """The value of the last `--flag value` or `--flag=value`."""
    found = None
    for at, word in enumerate(words):
        text = word.text or ""
        if text == flag and at + 1 < len(words):
            found = words[at + 1].text
        elif text.startswith(flag + "="):
            found = text[len(flag) + 1 :]
    return found
