"""The configuration file's format: which keys there are, of which types, and what is wrong with a file that has others."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from klaudit.configuration import FAIL_ON, MAX_BYTES, Configuration, ConfigurationError, Options, PerFileIgnores
from klaudit.configuration_policy import Keys, read_allowed, read_per_path, read_required, read_severities
from klaudit.corrections import did_you_mean, version_problem
from klaudit.globs import Globs, refusal
from klaudit.policy import CONFIDENCES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_SECTION = re.compile(r"(?m)^\s*\[\s*tool\s*\.\s*klaudit\b")
_HEADER = re.compile(r"\s*(?:\[([^\[\]]+)\]|\[\[([^\[\]]+)\]\])\s*(?:#.*)?")
_NAME = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")

_T = TypeVar("_T", bound=str)


def read_configuration(file: Path, *, trusted: bool, patterns_from: str | None) -> Configuration:
    """The options that `file` sets, its patterns meant from a folder, by default its own.

    Raises ConfigurationError for a file that cannot be read or used.
    """
    text = _read(file)
    path = str(file)
    table: object = _parse(path, text)
    section = ""
    if file.name == "pyproject.toml":
        section = "tool.klaudit"
        for key in section.split("."):
            table = table.get(key, {}) if isinstance(table, dict) else table
    reader = Reader(path, text, section, file.parent, trusted, patterns_from or os.path.realpath(file.parent))
    return reader.configuration(table)


def has_section(data: bytes) -> bool:
    """Whether the text of a pyproject.toml has `[tool.klaudit]`; of one that cannot be parsed, whether it looks like it."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    try:
        tool = tomllib.loads(text).get("tool", {})
    except (ValueError, RecursionError):
        return _SECTION.search(text) is not None
    return not isinstance(tool, dict) or "klaudit" in tool


def settings_in(name: str, data: bytes) -> dict[str, object]:
    """What a configuration file of this name sets, by key; nothing for one that cannot be parsed."""
    try:
        table: object = tomllib.loads(data.decode("utf-8").replace("\r\n", "\n"))
    except (ValueError, RecursionError):
        return {}
    for key in ("tool", "klaudit") if name == "pyproject.toml" else ():
        table = table.get(key, {}) if isinstance(table, dict) else table
    return table if isinstance(table, dict) else {}


def _read(file: Path) -> str:
    try:
        if not file.is_file():  # a pipe or device would block
            raise ConfigurationError(str(file), None, "no such file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(str(file), None, error.strerror or str(error)) from None
    if len(data) > MAX_BYTES:
        raise ConfigurationError(str(file), None, f"larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(file), data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None


def _parse(path: str, text: str) -> dict[str, Any]:
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = _AT_LINE.search(str(error))
        message = _AT_LINE.sub("", str(error)).strip()
        raise ConfigurationError(path, int(where[1]) if where else None, f"not TOML: {message}") from None
    except (RecursionError, ValueError) as error:  # ValueError: an integer of too many digits
        message = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigurationError(path, None, f"not usable: {message}") from None
    return table


class Reader(Struct, frozen=True):
    """Takes one section apart.  `keys` of its methods say where in it a value stands."""

    path: str
    text: str
    section: str
    folder: Path
    trusted: bool
    patterns_from: str

    def configuration(self, table: object) -> Configuration:
        if not isinstance(table, dict):
            raise self.error((), f"`{self.section}` must be a table")
        given: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for key, value in table.items():
            self.known((key,), key, _KEYS)
            field, convert = _KEYS[key]
            given[field] = convert(self, (key,), value)
            line = self.line_of((key,))
            origins[field] = f"{self.path}:{line}" if line else self.path
        return Configuration(Options(**given), self.path, origins)

    def error(self, keys: Keys, message: str) -> ConfigurationError:
        return ConfigurationError(self.path, self.line_of(keys), message)

    def known(self, keys: Keys, key: str, wanted: Collection[str]) -> None:
        """Raises ConfigurationError for a key that is none of those wanted."""
        if key not in wanted:
            raise self.error(keys, f"unknown key `{key}`{did_you_mean(key, wanted)}")

    def line_of(self, keys: Keys) -> int | None:
        """The line that sets a key of the section, or a key of a table in it; the nearest line before it where that is hidden."""
        wanted: Keys = (*self.section.split("."), *keys) if self.section else keys
        best: int | None = None
        depth = 0
        table: Keys = ()
        arrays: dict[Keys, int] = {}  # by arrays of tables: which table is open
        for number, line in enumerate(self.text.split("\n"), 1):
            if header := _HEADER.fullmatch(line):
                here = table = _opened(_dotted(header[1] or header[2]), arrays, is_array=bool(header[2]))
            elif key := _KEY.match(line):
                here = (*table, *_dotted(key[1]))
            else:
                continue
            shared = min(len(here), len(wanted))
            if shared > depth and here[:shared] == wanted[:shared]:
                best, depth = number, shared
        return best

    # --- values ----------------------------------------------------------------------------------------------------------------

    def strings(self, keys: Keys, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(keys, f"`{keys[-1]}` must be a list of strings, not {_shown(value)}")
        return tuple(value)

    def flag(self, keys: Keys, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.error(keys, f"`{keys[-1]}` must be true or false, not {_shown(value)}")
        return value

    def count(self, keys: Keys, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1024:
            shown = value if type(value) is int else _shown(value)
            raise self.error(keys, f"`{keys[-1]}` must be a whole number from 1 to 1024, not {shown}")
        return value

    def one_of(self, keys: Keys, value: object, choices: Collection[_T]) -> _T:
        """The choice that a string names."""
        for choice in choices:
            if value == choice:
                return choice
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        hint = "" if hint.startswith(" (") else hint
        shown = f"`{value[:40]}`" if isinstance(value, str) else _shown(value)
        raise self.error(keys, f"`{keys[-1]}` must be one of {', '.join(choices)}, not {shown}{hint}")

    @staticmethod
    def shown(value: object) -> str:
        """A value in a message."""
        return _shown(value)

    def versions(self, keys: Keys, value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self.error(keys, f"`{keys[-1]}` must be a table of framework = version, not {_shown(value)}")
        for name, version in value.items():
            if not isinstance(version, str):
                message = f'the version of `{name}` must be a string such as "0.7.0", not {_shown(version)}'
                raise self.error((*keys, name), message)
            if problem := version_problem(version):
                raise self.error((*keys, name), problem)
        return dict(value)

    def globs(self, keys: Keys, value: object) -> tuple[Globs, ...]:
        patterns = self.strings(keys, value)
        for pattern in patterns:
            self.check_glob(keys, pattern)
        return (Globs(self.patterns_from, patterns),) if patterns else ()

    def per_file_ignores(self, keys: Keys, value: object) -> tuple[PerFileIgnores, ...]:
        if not isinstance(value, dict):
            raise self.error(keys, f"`{keys[-1]}` must be a table of pattern = [rules], not {_shown(value)}")
        for pattern, selectors in value.items():
            self.check_glob((*keys, pattern), pattern)
            if not isinstance(selectors, list) or not all(isinstance(item, str) for item in selectors):
                raise self.error((*keys, pattern), f"`{pattern}` must give a list of rules, not {_shown(selectors)}")
        base = self.patterns_from
        return tuple(PerFileIgnores(Globs(base, (pattern,)), tuple(value[pattern])) for pattern in value)

    def file(self, keys: Keys, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise self.error(keys, f"`{keys[-1]}` must be the name of a file, not {_shown(value)}")
        return self._inside(keys, value)

    def rule_folders(self, keys: Keys, value: object) -> tuple[str, ...]:
        folders = []
        for name in self.strings(keys, value):
            folder = self._inside(keys, name)
            if not Path(folder).is_dir():
                raise self.error(keys, f"no such folder: `{name}`")
            folders.append(folder)
        return tuple(folders)

    def _inside(self, keys: Keys, name: str) -> str:
        """The absolute path that a name stands for, which must be below this file's folder."""
        if "\0" in name:
            raise self.error(keys, "a null byte in a name")
        base, path = os.path.realpath(self.folder), os.path.realpath(self.folder / name)
        if not self.trusted and not (path + os.sep).startswith(base.rstrip(os.sep) + os.sep):
            message = f"`{name}` leads out of the folder of this file: allowed only where --config names the file"
            raise self.error(keys, message)
        return path

    def check_glob(self, keys: Keys, pattern: str) -> None:
        if problem := refusal(pattern):
            raise self.error(keys, f"`{pattern}` is no usable pattern: {problem}")


_KEYS: Mapping[str, tuple[str, Callable[[Reader, Keys, object], object]]] = {
    "select": ("select", Reader.strings),
    "ignore": ("ignore", Reader.strings),
    "exclude": ("exclude", Reader.globs),
    "frameworks": ("frameworks", Reader.strings),
    "framework-versions": ("framework_versions", Reader.versions),
    "fail-on": ("fail_on", lambda reader, keys, value: reader.one_of(keys, value, FAIL_ON)),
    "include-markdown": ("include_markdown", Reader.flag),
    "jobs": ("jobs", Reader.count),
    "per-file-ignores": ("per_file_ignores", Reader.per_file_ignores),
    "rules": ("rules", Reader.rule_folders),
    "min-confidence": ("min_confidence", lambda reader, keys, value: reader.one_of(keys, value, CONFIDENCES)),
    "require-reasons": ("require_reasons", Reader.flag),
    "severity": ("severity", read_severities),
    "require": ("require", read_required),
    "per-path": ("per_path", read_per_path),
    "allow": ("allow", read_allowed),
    "baseline": ("baseline", Reader.file),
}
KEYS: Mapping[str, str] = {key: field for key, (field, _) in _KEYS.items()}


def _shown(value: object) -> str:
    kinds = {bool: "a truth value", str: "a string", int: "an integer", list: "a list", dict: "a table"}
    kind = kinds.get(type(value), f"a {type(value).__name__}")
    return kind if isinstance(value, list | dict) else f"{kind} ({str(value)[:40]})"


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(bare or quoted for quoted, bare in re.findall(r"""["']([^"']*)["']|([A-Za-z0-9_-]+)""", text))


def _opened(names: tuple[str, ...], arrays: dict[Keys, int], *, is_array: bool) -> Keys:
    """A header's table, with the index of the open table behind the name of each array of tables."""
    here: Keys = ()
    for at, name in enumerate(names):
        here = (*here, name)
        if is_array and at == len(names) - 1:
            arrays[here] = arrays.get(here, -1) + 1
        if here in arrays:
            here = (*here, arrays[here])
    return here
