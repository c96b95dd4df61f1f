"""The catalogue: one YAML file a finding in rules/findings, read when it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from klaudit.compiled import Compiled, read_compiled
from klaudit.frameworks.load import RulesError, shipped_rules
from klaudit.model import Severity


class Example(Struct, frozen=True):
    """A wrong and a right text in one language (a file suffix without dot: sh, yaml, py ...), executed as tests.

    `beside` are the files that lie beside either, by name; `configuration` is the klaudit.toml under which they are judged.
    """

    language: str
    wrong: str
    right: str
    title: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    beside: tuple[tuple[str, str], ...] = ()
    configuration: str = ""

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """All that lies beside the example, its configuration among it."""
        return (*self.beside, ("klaudit.toml", self.configuration)) if self.configuration else self.beside


class Entry(Struct, frozen=True):
    """One finding of the catalogue.  `name` is its file name, docs anchor and judge's name."""

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    fix: str
    since: str
    examples: tuple[Example, ...]
    references: tuple[str, ...]

    @property
    def advice(self) -> str:
        """What to do in one line: the first sentence of `fix`."""
        return " ".join(self.fix.split()).partition(". ")[0].rstrip(".")


@lru_cache(maxsize=1)
def names() -> dict[str, str]:
    """Finding ids by name, without reading the files: `<id>-<name>.yaml`."""
    return {path.stem[7:]: path.stem[:6] for path in sorted((shipped_rules() / "findings").glob("KLA*.yaml"))}


@cache
def entry(name: str) -> Entry:
    """One finding by name.  Raises KeyError for an unknown name, RulesError for a broken file."""
    path = shipped_rules() / "findings" / f"{names()[name]}-{name}.yaml"
    data = path.read_bytes()
    return _compiled().record(path.name, data) or read(path, data)


@cache
def with_id(id: str) -> Entry:
    """One finding by id.  Raises KeyError for an unknown id, RulesError for a broken file."""
    return entry({id: name for name, id in names().items()}[id])


@lru_cache(maxsize=1)
def load() -> tuple[Entry, ...]:
    """The whole catalogue, by id.  Raises RulesError."""
    return tuple(sorted((entry(name) for name in names()), key=lambda each: each.id))


@lru_cache(maxsize=1)
def _compiled() -> Compiled[Entry]:
    return read_compiled(shipped_rules() / "findings", Entry)


def read(path: Path, text: bytes) -> Entry:
    """The finding of a YAML file.  Raises RulesError."""
    import yaml

    data: Any = yaml.load(text.decode("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        examples = tuple(_example(item) for item in data.get("examples", ()))
        found = Entry(
            data["id"], data["name"], data["severity"], data["summary"], data["why"].strip(), data["fix"].strip(), str(data["since"]),
            examples, tuple(data.get("references", ())),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise RulesError(f"{path}:1: {type(error).__name__}: {error}") from None
    if f"{found.id}-{found.name}" != path.stem:
        raise RulesError(f"{path}:1: the file is not named after id and name ({found.id}-{found.name})")
    return found


def _example(data: Any) -> Example:
    versions: Iterable[tuple[str, str]] = ((str(key), str(value)) for key, value in data.get("versions", {}).items())
    return Example(
        data["language"],
        data["wrong"],
        data["right"],
        data.get("title", ""),
        tuple(versions),
        tuple((str(name), str(text)) for name, text in data.get("beside", {}).items()),
        data.get("configuration", ""),
    )
