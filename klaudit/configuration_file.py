"""The configuration file's format: which keys there are, of which types, and what is wrong with a file that has others."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from klaudit.configuration import FAIL_ON, MAX_BYTES, Configuration, ConfigurationError, Options, PerFileIgnores
from klaudit.globs import Globs, refusal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_SECTION = re.compile(r"(?m)^\s*\[\s*tool\s*\.\s*klaudit\b")
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_NAME = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")


def read_configuration(file: Path, *, trusted: bool) -> Configuration:
    """The options that `file` sets.  Raises ConfigurationError for a file that cannot be read or used."""
    text = _read(file)
    path = str(file)
    table: object = _parse(path, text)
    section = ""
    if file.name == "pyproject.toml":
        section = "tool.klaudit"
        for key in section.split("."):
            table = table.get(key, {}) if isinstance(table, dict) else table
    reader = _Reader(path, text, section, file.parent, trusted)
    return reader.configuration(table)


def has_section(data: bytes) -> bool:
    """Whether the text of a pyproject.toml has `[tool.klaudit]`; of one that cannot be parsed, whether it looks like it."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    try:
        tool = tomllib.loads(text).get("tool", {})
    except (ValueError, RecursionError):
        return _SECTION.search(text) is not None
    return not isinstance(tool, dict) or "klaudit" in tool


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


class _Reader(Struct, frozen=True):
    path: str
    text: str
    section: str
    folder: Path
    trusted: bool

    def configuration(self, table: object) -> Configuration:
        if not isinstance(table, dict):
            raise self.error((), f"`{self.section}` must be a table")
        given: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for key, value in table.items():
            if key not in _KEYS:
                raise self.error((key,), f"unknown key `{key}`{did_you_mean(key, _KEYS)}")
            field, convert = _KEYS[key]
            given[field] = convert(self, key, value)
            line = self.line_of((key,))
            origins[field] = f"{self.path}:{line}" if line else self.path
        return Configuration(Options(**given), self.path, origins)

    def error(self, keys: tuple[str, ...], message: str) -> ConfigurationError:
        return ConfigurationError(self.path, self.line_of(keys), message)

    def line_of(self, keys: tuple[str, ...]) -> int | None:
        """The line that sets a key of the section, or a key of a table in it; the nearest line before it where that is hidden."""
        wanted = (*self.section.split("."), *keys) if self.section else keys
        best: int | None = None
        depth = 0
        table: tuple[str, ...] = ()
        for number, line in enumerate(self.text.split("\n"), 1):
            if header := _HEADER.fullmatch(line):
                here = table = _dotted(header[1])
            elif key := _KEY.match(line):
                here = (*table, *_dotted(key[1]))
            else:
                continue
            shared = min(len(here), len(wanted))
            if shared > depth and here[:shared] == wanted[:shared]:
                best, depth = number, shared
        return best

    # --- values ----------------------------------------------------------------------------------------------------------------

    def strings(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error((key,), f"`{key}` must be a list of strings, not {_shown(value)}")
        return tuple(value)

    def flag(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.error((key,), f"`{key}` must be true or false, not {_shown(value)}")
        return value

    def count(self, key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1024:
            raise self.error((key,), f"`{key}` must be a whole number from 1 to 1024, not {_shown(value)}")
        return value

    def fail_on(self, key: str, value: object) -> str:
        if value not in FAIL_ON:
            hint = did_you_mean(value, FAIL_ON) if isinstance(value, str) else ""
            raise self.error((key,), f"`{key}` must be one of {', '.join(FAIL_ON)}, not {_shown(value)}{hint}")
        return str(value)

    def versions(self, key: str, value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self.error((key,), f"`{key}` must be a table of framework = version, not {_shown(value)}")
        for name, version in value.items():
            if not isinstance(version, str):
                message = f'the version of `{name}` must be a string such as "0.7.0", not {_shown(version)}'
                raise self.error((key, name), message)
            if problem := version_problem(version):
                raise self.error((key, name), problem)
        return dict(value)

    def globs(self, key: str, value: object) -> tuple[Globs, ...]:
        patterns = self.strings(key, value)
        for pattern in patterns:
            self._check_glob((key,), pattern)
        return (Globs(os.path.realpath(self.folder), patterns),) if patterns else ()

    def per_file_ignores(self, key: str, value: object) -> tuple[PerFileIgnores, ...]:
        if not isinstance(value, dict):
            raise self.error((key,), f"`{key}` must be a table of pattern = [rules], not {_shown(value)}")
        for pattern, selectors in value.items():
            self._check_glob((key, pattern), pattern)
            if not isinstance(selectors, list) or not all(isinstance(item, str) for item in selectors):
                raise self.error((key, pattern), f"`{pattern}` must give a list of rules, not {_shown(selectors)}")
        base = os.path.realpath(self.folder)
        return tuple(PerFileIgnores(Globs(base, (pattern,)), tuple(value[pattern])) for pattern in value)

    def rule_folders(self, key: str, value: object) -> tuple[str, ...]:
        base = os.path.realpath(self.folder)
        folders = []
        for name in self.strings(key, value):
            if "\0" in name:
                raise self.error((key,), "a null byte in a folder's name")
            folder = os.path.realpath(self.folder / name)
            if not self.trusted and not (folder + os.sep).startswith(base.rstrip(os.sep) + os.sep):
                message = f"`{name}` leads out of the folder of this file: allowed only where --config names the file"
                raise self.error((key,), message)
            if not Path(folder).is_dir():
                raise self.error((key,), f"no such folder: `{name}`")
            folders.append(folder)
        return tuple(folders)

    def _check_glob(self, keys: tuple[str, ...], pattern: str) -> None:
        if problem := refusal(pattern):
            raise self.error(keys, f"`{pattern}` is no usable pattern: {problem}")


_KEYS: Mapping[str, tuple[str, Callable[[_Reader, str, object], object]]] = {
    "select": ("select", _Reader.strings),
    "ignore": ("ignore", _Reader.strings),
    "exclude": ("exclude", _Reader.globs),
    "frameworks": ("frameworks", _Reader.strings),
    "framework-versions": ("framework_versions", _Reader.versions),
    "fail-on": ("fail_on", _Reader.fail_on),
    "include-markdown": ("include_markdown", _Reader.flag),
    "jobs": ("jobs", _Reader.count),
    "per-file-ignores": ("per_file_ignores", _Reader.per_file_ignores),
    "rules": ("rules", _Reader.rule_folders),
}
KEYS: Mapping[str, str] = {key: field for key, (field, _) in _KEYS.items()}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`: did you mean ...?` with the nearest known words, or all of them where none is near."""
    known = sorted(known)
    near = difflib.get_close_matches(word.replace("_", "-"), known) or difflib.get_close_matches(word, known)
    if near:
        return f": did you mean {' or '.join(f'`{name}`' for name in near[:2])}?"
    return f" (known: {', '.join(known)})" if len(known) <= 20 else ""


def version_problem(text: str) -> str | None:
    """Why a text is no version, None where it is one."""
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return f"`{text}` is no version such as 0.7.0"
    return None


def _shown(value: object) -> str:
    kinds = {bool: "a truth value", str: "a string", int: "an integer", list: "a list", dict: "a table"}
    kind = kinds.get(type(value), f"a {type(value).__name__}")
    return kind if isinstance(value, list | dict) else f"{kind} ({str(value)[:40]})"


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(bare or quoted for quoted, bare in re.findall(r"""["']([^"']*)["']|([A-Za-z0-9_-]+)""", text))
