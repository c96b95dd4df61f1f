"""Reads rules/frameworks/*.yaml into the records of rules.py; whatever does not fit is an error with file, line and what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from packaging.version import Version

from klaudit.compiled import Compiled, read_compiled
from klaudit.errors import KlauditError
from klaudit.frameworks.conditions import misfits
from klaudit.frameworks.records import (
    Keys,
    MisfitError,
    build,
    check_keys,
    convert,
    did_you_mean,
    key_of,
    line_of,
    mapping,
    sequence,
)
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


class RulesError(KlauditError, ValueError):
    """A framework file that does not follow the format; the message starts with path and line."""


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
    compiled = read_compiled(shipped_rules() / "frameworks", Framework)
    return tuple(_known_framework(path, compiled) for _, path in sorted(files.items()))


def _known_framework(path: Path, compiled: Compiled[Framework]) -> Framework:
    data = path.read_bytes()
    framework = compiled.record(path.name, data)
    return _read(path, data) if framework is None else replace(framework, path=str(path))


def load_framework(path: Path) -> Framework:
    """One framework file.  Raises RulesError."""
    return _read(path, path.read_bytes())


def _read(path: Path, data: bytes) -> Framework:
    import yaml

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RulesError(f"{path}:1: not UTF-8: {error.reason}") from None
    try:
        tree = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise RulesError(f"{path}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}") from None
    try:
        return _framework(tree, str(path))
    except MisfitError as misfit:
        line = line_of(yaml, text, misfit.keys)
        where = ".".join(map(str, misfit.keys))
        raise RulesError(f"{path}:{line}: {where + ': ' if where else ''}{misfit}") from None
    except RecursionError:
        raise RulesError(f"{path}:1: nested too deeply, or an alias that holds itself") from None


_TOP = (
    "framework",
    "title",
    "derived-from",
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
    check_keys(mapping(data, ()), _TOP, ())
    for key in ("framework", "title", "trainers", "releases"):
        if key not in data:
            raise MisfitError((), f"`{key}` is missing")
    releases = sequence(data["releases"], ("releases",))
    trainers = sequence(data["trainers"], ("trainers",))
    return Framework(
        id=str(data["framework"]),
        title=str(data["title"]),
        repository=str(data.get("repository", "")),
        distributions=convert(tuple[str, ...], data.get("distributions", []), ("distributions",)),
        releases=tuple(convert(Version, name, ("releases", at)) for at, name in enumerate(releases)),
        release_names=tuple(map(str, releases)),
        vendored=build(Vendored, data.get("vendored", {}), ("vendored",)),
        trainers=tuple(_trainer(item, ("trainers", at)) for at, item in enumerate(trainers)),
        never_existed=convert(tuple[NeverExisted, ...], data.get("never-existed", []), ("never-existed",)),
        keywords=convert(tuple[str, ...], data.get("keywords", []), ("keywords",)),
        path=path,
        derived_from=str(data.get("derived-from", "")),
    )


def _trainer(data: Any, keys: Keys) -> Trainer:
    data = dict(mapping(data, keys))
    settings = {
        name: _setting(name, item, (*keys, "settings", name))
        for name, item in mapping(data.pop("settings", {}), (*keys, "settings")).items()
    }
    vocabularies = {
        name: _vocabulary(name, item, (*keys, "vocabularies", name))
        for name, item in mapping(data.pop("vocabularies", {}), (*keys, "vocabularies")).items()
    }
    trainer: Trainer = replace(build(Trainer, data, keys), settings=settings, vocabularies=vocabularies)
    for record, at in _records(trainer, keys):
        _check_references(record, trainer, at)
    return trainer


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
    data = dict(mapping(data, keys))
    check_keys(data, _SETTING, keys)
    for one, several in (("name", "names"), ("default", "defaults")):
        if one in data and several in data:
            raise MisfitError((*keys, several), f"both `{one}` and `{several}`")
    if not isinstance(data.get("name", ""), str):
        raise MisfitError((*keys, "name"), f"{data['name']!r} is not a str")
    names = sequence(data.get("names", [data["name"]] if "name" in data else []), (*keys, "names"))
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
    setting: SettingSpec = build(SettingSpec, spec, keys)
    return setting


def _vocabulary(name: str, data: Any, keys: Keys) -> Vocabulary:
    data = mapping(data, keys)
    check_keys(data, ("words", "otherwise-raises", "otherwise-why", "ignore-case", "checked-in"), keys)
    return Vocabulary(
        name,
        convert(tuple[Word, ...], data.get("words", []), (*keys, "words")),
        str(data.get("otherwise-raises", "")),
        str(data.get("otherwise-why", "")),
        bool(data.get("ignore-case", False)),
        convert(tuple[CheckedIn, ...], data.get("checked-in", []), (*keys, "checked-in")),
    )


def _check_references(record: Any, trainer: Trainer, keys: Keys) -> None:
    """Every setting and vocabulary that a fact names must exist."""
    for field in ("setting", "switch", "algorithm"):
        _check_names(keys, field, [name] if (name := getattr(record, field, "")) else [], trainer.settings, "setting")
    _check_names(keys, "only-with", getattr(record, "only_with", ()), trainer.settings, "setting")
    if isinstance(record, SettingSpec) and record.vocabulary:
        _check_names(keys, "vocabulary", [record.vocabulary], trainer.vocabularies, "vocabulary")
    if isinstance(record, Recipe):
        for field, names in (("set", record.set), ("group-std", record.group_std), ("remove", record.remove)):
            _check_names(keys, field, names, trainer.settings, "setting")
        _check_names(keys, "coefficient", filter(None, [record.coefficient]), trainer.settings, "setting")
    condition = getattr(record, "when", None)
    if condition is not None:
        for at, message in misfits(condition, trainer.settings, (*keys, "if")):
            raise MisfitError(at, message)


def _check_names(keys: Keys, field: str, names: Iterable[str], known: Mapping[str, object], kind: str) -> None:
    for name in names:
        if name not in known:
            raise MisfitError((*keys, field), f"no {kind} {name!r}{did_you_mean(name, known)}")


def _records(record: Any, keys: Keys) -> Iterator[tuple[Any, Keys]]:
    """A record and all records in it, each with the keys that lead to it."""
    yield record, keys
    for name in record.__struct_fields__:
        value = getattr(record, name)
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
        for at, item in items:
            if isinstance(item, Struct):
                yield from _records(item, (*keys, key_of(name), at))
