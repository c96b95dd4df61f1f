"""The tables of a configuration file that make up its policy: `per-path`, `allow`, `severity`, and the words `require` may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from klaudit.globs import Globs
from klaudit.model import Severity
from klaudit.policy import CONFIDENCES, FAIL_ON, SEVERITIES, Allowed, PerPath
from klaudit.theory.naming import SETUP_NAMES

if TYPE_CHECKING:
    from klaudit.configuration_file import Reader

Keys: TypeAlias = (
    "tuple[str | int, ...]"  # where a value stands: names of keys, and indices (from 0) into arrays of tables
)


def read_per_path(reader: Reader, keys: Keys, value: object) -> tuple[PerPath, ...]:
    return tuple(_per_path(reader, where, table) for where, table in _tables(reader, keys, value))


def read_allowed(reader: Reader, keys: Keys, value: object) -> tuple[Allowed, ...]:
    return tuple(_allowed(reader, where, table) for where, table in _tables(reader, keys, value))


def read_severities(reader: Reader, keys: Keys, value: object) -> Mapping[str, Severity]:
    """`KLA106 = "warning"`, by rule id or name."""
    if not isinstance(value, dict):
        raise reader.error(keys, f"`{keys[-1]}` must be a table of rule = severity, not {reader.shown(value)}")
    return {rule: reader.one_of((*keys, rule), given, SEVERITIES) for rule, given in value.items()}


def read_required(reader: Reader, keys: Keys, value: object) -> tuple[str, ...]:
    """One name of a set-up, or a list of which any will do."""
    names = (value,) if isinstance(value, str) else reader.strings(keys, value)
    return tuple(reader.one_of(keys, name, SETUP_NAMES) for name in names)


_PER_PATH: Mapping[str, Callable[[Reader, Keys, object], object]] = {
    "paths": lambda reader, keys, value: _paths(reader, keys, value),
    "fail-on": lambda reader, keys, value: reader.one_of(keys, value, FAIL_ON),
    "select": lambda reader, keys, value: reader.strings(keys, value),
    "ignore": lambda reader, keys, value: reader.strings(keys, value),
    "min-confidence": lambda reader, keys, value: reader.one_of(keys, value, CONFIDENCES),
    "severity": read_severities,
    "require": read_required,
}


def _per_path(reader: Reader, keys: Keys, table: dict[str, object]) -> PerPath:
    given: dict[str, Any] = {}
    for key, value in table.items():
        reader.known((*keys, key), key, _PER_PATH)
        given[key.replace("-", "_")] = _PER_PATH[key](reader, (*keys, key), value)
    if "paths" not in given:
        raise reader.error(keys, "a `per-path` needs `paths`: the patterns for which it holds")
    return PerPath(globs=given.pop("paths"), **given)


def _allowed(reader: Reader, keys: Keys, table: dict[str, object]) -> Allowed:
    for key in table:
        reader.known((*keys, key), key, ("rule", "setup", "paths", "reason"))
    reason = table.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise reader.error((*keys, "reason"), "an `allow` needs a `reason`: why this is right here")
    rules = _words(reader, (*keys, "rule"), table.get("rule", []))
    setups = tuple(
        reader.one_of((*keys, "setup"), name, SETUP_NAMES)
        for name in _words(reader, (*keys, "setup"), table.get("setup", []))
    )
    if not rules and not setups:
        raise reader.error(keys, "an `allow` needs `rule`, `setup` or both: what is allowed")
    globs = _paths(reader, (*keys, "paths"), table["paths"]) if "paths" in table else None
    return Allowed(" ".join(reason.split()), rules, setups, globs, reader.path, reader.line_of(keys))


def _tables(reader: Reader, keys: Keys, value: object) -> list[tuple[Keys, dict[str, object]]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        name = ".".join(part for part in (reader.section, str(keys[-1])) if part)
        raise reader.error(keys, f"`{keys[-1]}` must be tables, each under a header [[{name}]]")
    return [((*keys, at), item) for at, item in enumerate(value)]


def _words(reader: Reader, keys: Keys, value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else reader.strings(keys, value)


def _paths(reader: Reader, keys: Keys, value: object) -> Globs:
    patterns = _words(reader, keys, value)
    if not patterns:
        raise reader.error(keys, "`paths` must name at least one pattern")
    for pattern in patterns:
        reader.check_glob(keys, pattern)
    return Globs(reader.patterns_from, patterns)
