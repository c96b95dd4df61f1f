"""Framework rules against the files of one release: every default, choice, vocabulary word, entry point and checked text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import fields
from packaging.version import Version

from checking import sources
from checking.expected import Expected
from checking.sources import MissingSourceError, NotLiteral, Stated, Statements, UnreadableSourceError
from klaudit.frameworks.rules import Case, CheckedIn, EntryPoint, Framework, SettingSpec, Trainer, Vocabulary

Outcome: TypeAlias = Literal["agree", "disagree", "unchecked"]


@dataclass(frozen=True, slots=True)
class Row:
    """One fact in one release.  `where` is the file that was asked."""

    fact: str
    where: str
    outcome: Outcome
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """Statements about all settings of a trainer, and the primary config under which they hold."""

    where: str
    config: str
    statements: Statements


def check_release(framework: Framework, version: Version, root: Path) -> Iterator[Row]:
    """Everything that can be checked of a release whose files lie below `root`."""
    for trainer in framework.trainers:
        if version not in trainer.versions:
            continue
        yield from _check_entry_points(trainer, version, root)
        found: list[_Source] = []
        for item in _trainer_sources(trainer, version, root):
            if isinstance(item, Row):
                yield item
            else:
                found.append(item)
        lost = []
        for spec in trainer.settings.values():
            rows = list(_check_setting(trainer, spec, version, root, found))
            yield from rows
            lost += [] if rows else [spec.id]
        if lost:
            yield Row(f"{trainer.id}: {', '.join(lost)}", "", "unchecked", "nothing says where to look")
        for vocabulary in trainer.vocabularies.values():
            yield from _check_vocabulary(trainer, vocabulary, version, root)
        yield from _check_texts(trainer, version, root)


# --- entry points and sources -------------------------------------------------------------------------------------------------------


def _check_entry_points(trainer: Trainer, version: Version, root: Path) -> Iterator[Row]:
    for entry in trainer.entry_points:
        if version in entry.versions:
            for module in entry.modules:
                base = root.joinpath(*module.split("."))
                there = base.with_suffix(".py").is_file() or (base / "__main__.py").is_file()
                outcome: Outcome = "agree" if there else "unchecked"
                yield Row(f"{trainer.id}: entry point {module}", "", outcome, "" if there else "not in this release")


def _trainer_sources(trainer: Trainer, version: Version, root: Path) -> Iterator[_Source | Row]:
    configs = {
        (entry.folder, config)
        for entry in trainer.entry_points
        if version in entry.versions and entry.folder and entry.config
        for config in (entry.config, *_shipped(entry, version), *_configs_of_defaults(trainer))
        if config == entry.config
        or config in _shipped(entry, version)
        or (root / entry.folder / f"{config}.yaml").is_file()
    }
    for folder, config in sorted(configs):
        where = f"{folder}/{config}"
        yield _source(
            trainer, where, config, lambda folder=folder, config=config: sources.composed(root, folder, config)
        )
    for place in trainer.source_defaults:
        if version in place.versions:
            yield _source(
                trainer,
                place.path,
                "",
                lambda place=place: _python(
                    root,
                    "dataclass" if place.kind == "dataclass" else "arguments",
                    place.path,
                    place.symbol,
                    place.prefix,
                ),
            )


def _shipped(entry: EntryPoint, version: Version) -> list[str]:
    return [each.name for each in entry.configs if version in each.versions]


def _configs_of_defaults(trainer: Trainer) -> set[str]:
    return {config for spec in trainer.settings.values() for default in spec.defaults for config in default.config}


def _source(trainer: Trainer, where: str, config: str, read: Any) -> _Source | Row:
    try:
        return _Source(where, config, read())
    except MissingSourceError as error:
        return Row(f"{trainer.id}: all settings", where, "unchecked", f"not in this release: {error}")
    except UnreadableSourceError as error:
        return Row(f"{trainer.id}: all settings", where, "disagree", str(error))


def _python(root: Path, kind: str, path: str, symbol: str, prefix: str) -> Statements:
    read = sources.dataclass_fields if kind == "dataclass" else sources.arguments
    return _below(prefix, read(root, path, symbol))


def _below(prefix: str, statements: Statements) -> Statements:
    """With what the settings' names have before the names of the file."""
    return {f"{prefix.rstrip('.')}.{name}": stated for name, stated in statements.items()} if prefix else statements


# --- settings -----------------------------------------------------------------------------------------------------------------------


def _check_setting(
    trainer: Trainer, spec: SettingSpec, version: Version, root: Path, shared: list[_Source]
) -> Iterator[Row]:
    fact = f"{trainer.id}: {spec.id}"
    own = [check for check in spec.checked_in if version in check.versions]
    for check in own:
        if check.kind == "text":
            yield from _check_text(fact, check, root)
            continue
        source = _source(trainer, check.path, "", lambda check=check: _statements(root, check))
        if isinstance(source, Row):
            yield replace(source, fact=fact)
        else:
            yield _compare(fact, spec, source, Expected(trainer, version, Path(check.path).stem), check.key)
    if not own:
        for source in shared:
            yield _compare(fact, spec, source, Expected(trainer, version, source.config), "")


def _statements(root: Path, check: CheckedIn) -> Statements:
    if check.kind == "yaml":
        path = Path(check.path)
        return _below(check.prefix, sources.composed(root, path.parent.as_posix(), path.stem))
    return _python(root, check.kind, check.path, check.symbol, check.prefix)


def _compare(fact: str, spec: SettingSpec, source: _Source, expected: Expected, key: str) -> Row:
    either = expected.trainer.dashes == "either"
    statements = (
        {_plain(name, either): stated for name, stated in source.statements.items()} if either else source.statements
    )
    names = [key] if key else [_plain(name, either) for name in expected.names(spec)]
    stated = next((statements[name] for name in names if name in statements), None)
    for name in () if key else (_plain(each.name, either) for each in spec.names):
        if name in statements and name not in names and not _is_read(name, expected, either):
            return Row(fact, source.where, "disagree", f"{name} exists here, the rules say that it does not")
    try:
        default = expected.default(spec.id)
    except LookupError:
        return Row(fact, source.where, "unchecked", "its default hangs on the launch")
    if stated is None:
        if default is None or default.fixed or default.value is None:
            return Row(fact, source.where, "agree")
        return Row(fact, source.where, "disagree", f"not in the file under {' or '.join(names) or 'any name'}")
    if default is None:
        if stated.required or stated.value is None:
            return Row(fact, source.where, "agree")
        return Row(fact, source.where, "disagree", f"the release says {_show(stated.value)}, the rules have no default")
    if default.fixed:
        return Row(fact, source.where, "unchecked", "in the file; the rules say that it is not read")
    if isinstance(stated.value, NotLiteral):
        return Row(fact, source.where, "unchecked", f"computed: {stated.value.text}")
    if not _equal(stated.value, default.value):
        return Row(
            fact, source.where, "disagree", f"the release says {_show(stated.value)}, the rules {_show(default.value)}"
        )
    return _compare_choices(fact, spec, stated, source, expected)


def _is_read(name: str, expected: Expected, either: bool) -> bool:
    """Whether the rules know the name in this release, as any setting."""
    specs = expected.trainer.settings.values()
    return any(name == _plain(other, either) for spec in specs for other in expected.names(spec))


def _compare_choices(fact: str, spec: SettingSpec, stated: Stated, source: _Source, expected: Expected) -> Row:
    if stated.switch and spec.type != "switch":
        return Row(fact, source.where, "disagree", f"a switch in the release, {spec.type} in the rules")
    if stated.choices and (spec.choices or spec.vocabulary):
        ours = set(
            map(
                str,
                spec.choices or _working_words(expected.trainer.vocabularies[spec.vocabulary or ""], expected.version),
            )
        )
        theirs = {str(choice) for choice in stated.choices if choice is not None}
        if ours != theirs:
            return Row(fact, source.where, "disagree", f"choices differ in {', '.join(sorted(ours ^ theirs))}")
    return Row(fact, source.where, "agree")


def _plain(name: str, either: bool) -> str:
    name = name.lstrip("-")
    return name.replace("-", "_") if either else name


def _equal(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    if isinstance(theirs, int | float) and isinstance(ours, int | float):
        return float(theirs) == float(ours)
    return bool(theirs == ours)


def _show(value: Any) -> str:
    return value.text if isinstance(value, NotLiteral) else repr(value)


# --- vocabularies and texts ---------------------------------------------------------------------------------------------------------


def _check_vocabulary(trainer: Trainer, vocabulary: Vocabulary, version: Version, root: Path) -> Iterator[Row]:
    fact = f"{trainer.id}: vocabulary {vocabulary.id}"
    checks = [check for check in vocabulary.checked_in if version in check.versions]
    for check in (check for check in checks if check.kind == "text"):
        yield from _check_text(fact, check, root)
    spelt: set[str] = set()
    suffixes: set[str] = set()
    for check in (check for check in checks if check.kind == "words"):
        try:
            spelt |= sources.words(root, check.path, check.symbol, check.key)
        except MissingSourceError:
            yield Row(fact, check.path, "unchecked", "no such file in this release")
        except UnreadableSourceError as error:
            yield Row(fact, check.path, "disagree", str(error))
        suffixes.update(check.suffixes)
    where = ", ".join(check.path for check in checks)
    if not spelt:
        yield Row(fact, where, "unchecked", "nothing says where to look" if not checks else "no words found")
        return
    for word in vocabulary.words:
        if version in word.versions and not word.raises:
            yield Row(f"{fact}: {word.value}", where, *_judge_word(str(word.value), spelt, suffixes))
    ours = {str(word.value) for word in vocabulary.words if version in word.versions}
    for other in sorted(spelt - ours - suffixes):
        yield Row(f"{fact}: {other}", where, "disagree", "the release compares with it, the rules do not know it")


def _judge_word(word: str, spelt: set[str], suffixes: set[str]) -> tuple[Outcome, str]:
    if word in spelt:
        return "agree", ""
    for suffix in suffixes & spelt:
        if word.endswith(suffix) and word.removesuffix(suffix) in spelt:
            return "agree", ""
    return "disagree", "the release compares with no such word"


def _working_words(vocabulary: Vocabulary, version: Version) -> set[str]:
    return {str(word.value) for word in vocabulary.words if version in word.versions and not word.raises}


def _check_texts(trainer: Trainer, version: Version, root: Path) -> Iterator[Row]:
    """The `checked-in` texts of single facts: terms, faults, words, names, defaults ..."""
    for fact, case in _cases(trainer, trainer.id):
        for check in case.checked_in:
            if version in case.versions and version in check.versions:
                yield from _check_text(fact, check, root)


def _cases(record: Any, name: str) -> Iterable[tuple[str, Case]]:
    """Every Case inside a trainer, with a name to print."""
    if isinstance(record, Case):
        yield name, record
    for field in fields(record):
        value = getattr(record, field.name)
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
        for at, part in enumerate(parts):
            if isinstance(part, Struct):
                label = (
                    getattr(part, "id", "")
                    or getattr(part, "value", "")
                    or getattr(part, "name", "")
                    or f"{field.name}[{at}]"
                )
                yield from _cases(part, f"{name}: {label}")


def _check_text(fact: str, check: CheckedIn, root: Path) -> Iterator[Row]:
    where = f"{check.path} {check.symbol}".strip()
    try:
        text = sources.text(root, check.path, check.symbol)
    except MissingSourceError:
        yield Row(fact, where, "unchecked", "no such file in this release")
        return
    except UnreadableSourceError as error:
        yield Row(fact, where, "disagree", str(error))
        return
    if check.contains and check.contains not in text:
        yield Row(fact, where, "disagree", f"does not contain {check.contains!r}")
    elif check.lacks and check.lacks in text:
        yield Row(fact, where, "disagree", f"contains {check.lacks!r}")
    else:
        yield Row(fact, where, "agree")
