"""What the user asked for: `[tool.klaudit]` of pyproject.toml, or klaudit.toml, as one typed record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from klaudit.errors import KlauditError
from klaudit.globs import Globs
from klaudit.model import Confidence, Severity
from klaudit.policy import FAIL_ON, Allowed, FailOn, PerPath

__all__ = [
    "COMMAND_LINE", "FAIL_ON", "FILE_NAMES", "MAX_BYTES", "Configuration", "ConfigurationError", "FailOn", "Options", "PerFileIgnores",
    "SettingsFile", "StandardInput", "find", "load",
]  # fmt: skip

FILE_NAMES = ("klaudit.toml", "pyproject.toml")  # in a folder with both the first counts
MAX_BYTES = 1_000_000
COMMAND_LINE = "command line"  # as an origin of options


class ConfigurationError(KlauditError, ValueError):
    """Options that cannot be used.

    `path` is the configuration file, None where the caller gave them; `line` counts from 1, None where none is to blame.
    """

    def __init__(self, path: str | None, line: int | None, message: str) -> None:
        place = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(place + message)
        self.path = path
        self.line = line
        self.message = message


class PerFileIgnores(Struct, frozen=True):
    globs: Globs
    selectors: tuple[str, ...]


class StandardInput(Struct, frozen=True):
    """What `-` stands for: its contents, and the name under which they are read as if they lay on disk."""

    name: str
    data: bytes


class SettingsFile(Struct, frozen=True):
    """Where options were read from; `path` is None where none was found.  `is_named`: the caller chose it, and none was looked for."""

    path: str | None
    is_named: bool = False


class Options(Struct, frozen=True):
    """The effective options of a scan.

    `select` and `ignore` hold rule ids, prefixes of ids or names, an empty `select` meaning all; no `frameworks` means every known
    one; `jobs` 0 means one per core; `rules` are absolute folders with further rule files.  Those of the gate: whether comments can
    suppress (and must give a reason), the least confidence that counts, severities by rule, names of the set-ups that are required (any
    of them, see theory.naming; empty: no matter which), what holds for single paths, what is allowed, the file of known findings, the
    commit since which only changes count, seconds allowed in all and per file.  `settings_file` is None for options that no file could set.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[Globs, ...] = ()
    frameworks: tuple[str, ...] = ()
    framework_versions: Mapping[str, str] = field(default_factory=dict)
    fail_on: FailOn = "warning"
    include_markdown: bool = False
    jobs: int = 0
    per_file_ignores: tuple[PerFileIgnores, ...] = ()
    rules: tuple[str, ...] = ()
    prefilter: bool = True
    force_exclude: bool = False
    verbose: bool = False
    stdin: StandardInput | None = None
    suppressions: bool = True
    require_reasons: bool = False
    min_confidence: Confidence = "low"
    severity: Mapping[str, Severity] = field(default_factory=dict)
    require: tuple[str, ...] = ()
    per_path: tuple[PerPath, ...] = ()
    allow: tuple[Allowed, ...] = ()
    baseline: str | None = None
    diff_base: str | None = None
    timeout: float | None = None
    file_timeout: float | None = None
    settings_file: SettingsFile | None = None


class Configuration(Struct, frozen=True):
    """Options as a file gives them.  `origins` says where each one that it sets stands: field name -> `path:line`."""

    options: Options = Options()
    path: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    def overruled(self, **given: object) -> Configuration:
        """With the options of the command line in place of the file's; None stands for one that was not given."""
        changes = {name: value for name, value in given.items() if value is not None}
        origins = {**self.origins, **dict.fromkeys(changes, COMMAND_LINE)}
        return replace(self, options=replace(self.options, **changes), origins=origins)


def find(start: str) -> Path | None:
    """The nearest configuration file, from the absolute folder `start` upwards to the root of its repository.

    Outside a repository the search ends at the working directory, or at `start` where that does not lie below it: what happens to
    lie further up (a shared temporary folder, a home directory) has no say.

    Raises ConfigurationError for a symbolic link that leads out of where is searched: nothing there is shown or believed.
    """
    folders = [Path(start), *Path(start).parents]
    top = next((folder for folder in folders if (folder / ".git").exists()), None)
    if top is None:
        here = Path(os.path.realpath("."))
        top = here if here in folders else folders[0]
    for folder in folders[: folders.index(top) + 1]:
        for name in FILE_NAMES:
            file = folder / name
            if not file.is_file() or (name == "pyproject.toml" and not _has_section(file)):
                continue
            if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(top)):
                raise ConfigurationError(
                    str(file), None, f"a symbolic link that leads out of {top}; --config may name it"
                )
            return file
    return None


def load(file: str | Path, *, trusted: bool = False, patterns_from: str | None = None) -> Configuration:
    """Reads a configuration file.  `trusted`: the user named it, so that it may point outside its own folder.

    Its patterns are meant from the real folder `patterns_from`, by default its own.

    Raises ConfigurationError, with the line, for unknown keys, wrong types and unusable values.
    """
    from klaudit.configuration_file import read_configuration  # the parser is needed only where there is a file

    return read_configuration(Path(file), trusted=trusted, patterns_from=patterns_from)


def _has_section(file: Path) -> bool:
    """Most pyproject.toml files do not even hold the name, and need not be parsed."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES)
    except OSError:
        return False
    if b"klaudit" not in data:
        return False
    from klaudit.configuration_file import has_section

    return has_section(data)
