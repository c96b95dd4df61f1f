"""Reads rules/frameworks/*.yaml into the records of rules.py; whatever does not fit is an error with file, line and what was meant."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from klaudit.frameworks.rules import (
    CheckedIn,
    Framework,
    NeverExisted,
    Recipe,
    SettingSpec,
    Trainer,
    Vendored,
    Vocabulary,
    Word,
)
from klaudit.frameworks.versions import VersionRange, parse_version

Keys = tuple[str | int, ...]


class RulesError(ValueError):
    """A framework file that does not follow the format; the message starts with path and line."""


class _MisfitError(Exception):
    def __init__(self, keys: Keys, message: str) -> None:
        super().__init__(message)
        self.keys = keys


def shipped_rules() -> Path:
    """The folder of the shipped rules, in an installed wheel or in a checkout."""
    package = Path(__file__).resolve().parent.parent
    return package / "rules" if (package / "rules").is_dir() else package.parent / "rules"


@lru_cache(maxsize=4)
def load_frameworks(extra: tuple[str, ...] = ()) -> tuple[Framework, ...]:
    """Every framework of the shipped rules and of the folders `extra`, where a file of the same name wins.  Raises RulesError."""
    files: dict[str, Path] = {}
    for folder in (shipped_rules(), *map(Path, extra)):
        files.update({path.name: path for path in sorted((folder / "frameworks").glob("*.yaml"))})
    return tuple(load_framework(path) for _, path in sorted(files.items()))


def load_framework(path: Path) -> Framework:
    """One framework file.  Raises RulesError."""
    import yaml

    text = path.read_text(encoding="utf-8")
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise RulesError(f"{path}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}") from None
    try:
        return _framework(data, str(path))
    except _MisfitError as misfit:
        line = _line_of(yaml, text, misfit.keys)
        where = ".".join(map(str, misfit.keys))
        raise RulesError(f"{path}:{line}: {where + ': ' if where else ''}{misfit}") from None


_TOP = (
    "framework",
    "title",
    "repository",
    "distributions",
    "releases",
    "vendored",
    "shared",
    "trainers",
    "never-existed",
    "keywords",
)


def _framework(data: Any, path: str) -> Framework:
    if not isinstance(data, dict):
        raise _MisfitError((), "a framework file is a mapping")
    _check_keys(data, _TOP, ())
    for key in ("framework", "title", "trainers", "releases"):
        if key not in data:
            raise _MisfitError((), f"`{key}` is missing")
    names = [str(name) for name in data["releases"]]
    trainers = []
    for at, item in enumerate(data["trainers"]):
        trainers.append(_trainer(item, ("trainers", at)))
    return Framework(
        id=str(data["framework"]),
        title=str(data["title"]),
        repository=str(data.get("repository", "")),
        distributions=tuple(data.get("distributions", ())),
        releases=tuple(_convert(Version, name, ("releases", at)) for at, name in enumerate(names)),
        release_names=tuple(names),
        vendored=_build(Vendored, data.get("vendored", {}), ("vendored",)),
        trainers=tuple(trainers),
        never_existed=tuple(
            _build(NeverExisted, item, ("never-existed", at)) for at, item in enumerate(data.get("never-existed", ()))
        ),
        keywords=frozenset(data.get("keywords", ())),
        path=path,
    )


def _trainer(data: Any, keys: Keys) -> Trainer:
    data = dict(_mapping(data, keys))
    settings = {
        name: _setting(name, item, (*keys, "settings", name))
        for name, item in _mapping(data.pop("settings", {}), (*keys, "settings")).items()
    }
    vocabularies = {
        name: _vocabulary(name, item, (*keys, "vocabularies", name))
        for name, item in _mapping(data.pop("vocabularies", {}), (*keys, "vocabularies")).items()
    }
    for name, setting in settings.items():
        if setting.vocabulary and setting.vocabulary not in vocabularies:
            raise _MisfitError(
                (*keys, "settings", name),
                f"no vocabulary {setting.vocabulary!r}{_did_you_mean(setting.vocabulary, vocabularies)}",
            )
    trainer: Trainer = _build(Trainer, data, keys)
    _check_references(trainer, settings, keys)
    return dataclasses.replace(trainer, settings=settings, vocabularies=vocabularies)


_SETTING = (
    "name",
    "names",
    "type",
    "default",
    "defaults",
    "vocabulary",
    "choices",
    "summary",
    "source",
    "checked-in",
)


def _setting(name: str, data: Any, keys: Keys) -> SettingSpec:
    data = dict(_mapping(data, keys))
    _check_keys(data, _SETTING, keys)
    names = data.get("names", [data["name"]] if "name" in data else [])
    defaults = data.get("defaults", [{"value": data["default"]}] if "default" in data else [])
    spec = {
        "id": name,
        "names": [{"name": each} if isinstance(each, str) else each for each in names],
        "type": data.get("type", "any"),
        "defaults": defaults,
        "vocabulary": data.get("vocabulary"),
        "choices": data.get("choices", []),
        "summary": data.get("summary", ""),
        "source": data.get("source", ""),
        "checked-in": data.get("checked-in", []),
    }
    setting: SettingSpec = _build(SettingSpec, spec, keys)
    return setting


def _vocabulary(name: str, data: Any, keys: Keys) -> Vocabulary:
    data = _mapping(data, keys)
    _check_keys(data, ("words", "otherwise-raises", "otherwise-why", "ignore-case", "checked-in"), keys)
    words = tuple(_build(Word, item, (*keys, "words", at)) for at, item in enumerate(data.get("words", ())))
    return Vocabulary(
        name,
        words,
        str(data.get("otherwise-raises", "")),
        str(data.get("otherwise-why", "")),
        bool(data.get("ignore-case", False)),
        _convert(tuple[CheckedIn, ...], data.get("checked-in", []), (*keys, "checked-in")),
    )


def _check_references(trainer: Trainer, settings: Mapping[str, SettingSpec], keys: Keys) -> None:
    """Every setting id that a fact names must exist."""
    for record, at in _records(trainer, keys):
        named = [getattr(record, "setting", ""), getattr(record, "switch", ""), *getattr(record, "only_with", ())]
        if isinstance(record, Recipe):
            named += [record.coefficient, *record.set, *record.group_std, *record.remove]
        condition = getattr(record, "when", None)
        named += _names_in(condition) if condition else []
        for name in filter(None, named):
            if name not in settings and not name.startswith("$"):
                raise _MisfitError(at, f"no setting {name!r}{_did_you_mean(name, settings)}")


def _records(record: Any, keys: Keys) -> Iterable[tuple[Any, Keys]]:
    yield record, keys
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple):
            for at, item in enumerate(value):
                if dataclasses.is_dataclass(item):
                    yield from _records(item, (*keys, _key_of(field.name), at))


def _names_in(condition: Any) -> list[str]:
    names: list[str] = []
    for name, wanted in condition.items():
        if name in ("any", "all"):
            names += [found for part in wanted for found in _names_in(part)]
        elif name == "not":
            names += _names_in(wanted)
        else:
            names.append(name)
            if isinstance(wanted, dict):
                names += [
                    str(right["setting"]) for right in wanted.values() if isinstance(right, dict) and "setting" in right
                ]
    return names


# --- mappings to records, by the records' own annotations ---------------------------------------------------------------------------

_FIELD_OF = {"if": "when"}


def _key_of(field: str) -> str:
    return "if" if field == "when" else field.replace("_", "-")


def _build(record: Any, data: Any, keys: Keys) -> Any:
    hints = _hints(record)
    data = _mapping(data, keys)
    fields = [name for name in hints if not name.startswith("has_")]
    _check_keys(data, [_key_of(name) for name in fields], keys)
    values: dict[str, Any] = {}
    for key, item in data.items():
        name = _FIELD_OF.get(key, key.replace("-", "_"))
        values[name] = _convert(hints[name], item, (*keys, key))
        if f"has_{name}" in hints:
            values[f"has_{name}"] = True
    for field in dataclasses.fields(record):
        if (
            field.name not in values
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ):
            raise _MisfitError(keys, f"`{_key_of(field.name)}` is missing")
    return record(**values)


@lru_cache(maxsize=64)
def _hints(record: Any) -> dict[str, Any]:
    return typing.get_type_hints(record)


def _convert(hint: Any, item: Any, keys: Keys) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (VersionRange, Version):
        try:
            return VersionRange.parse(str(item)) if hint is VersionRange else parse_version(str(item))
        except ValueError as error:
            raise _MisfitError(keys, str(error)) from None
    if dataclasses.is_dataclass(hint):
        return _build(hint, item, keys)
    if origin is tuple:
        items = item if isinstance(item, list) else [item]
        return tuple(_convert(arguments[0], each, (*keys, at)) for at, each in enumerate(items))
    if origin is typing.Literal:
        if item not in arguments:
            raise _MisfitError(
                keys, f"{item!r} is none of {', '.join(map(str, arguments))}{_did_you_mean(str(item), arguments)}"
            )
        return item
    if origin in (types.UnionType, typing.Union):
        if item is None:
            return None
        known = [
            argument
            for argument in arguments
            if argument is not type(None) and not isinstance(argument, typing.ForwardRef)
        ]
        return item if len(known) != 1 else _convert(known[0], item, keys)
    if hint is float and isinstance(item, int | float) and not isinstance(item, bool):
        return float(item)
    if hint in (str, bool) and not isinstance(item, hint):
        raise _MisfitError(keys, f"{item!r} is not a {hint.__name__}")
    return item


def _mapping(data: Any, keys: Keys) -> Mapping[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise _MisfitError(keys, "must be a mapping with text keys")
    return data


def _check_keys(data: Mapping[str, Any], allowed: Iterable[str], keys: Keys) -> None:
    allowed = list(allowed)
    for key in data:
        if key not in allowed:
            raise _MisfitError((*keys, key), f"unknown key{_did_you_mean(key, allowed)}")


def _did_you_mean(word: str, known: Iterable[Any]) -> str:
    close = difflib.get_close_matches(word, [str(each) for each in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _line_of(yaml: Any, text: str, keys: Keys) -> int:
    """The line of the node at `keys`, or of the nearest one above it."""
    node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    line: int = node.start_mark.line + 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == key), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            break
    return line
