"""A file of keys as settings with dotted names."""

from __future__ import annotations

from collections import deque

from klaudit.model import Setting, Unknown, Value
from klaudit.readers.document import MappingNode, Node, ScalarNode, TreeDocument
from klaudit.readers.scalars import Dialect, resolve_scalar
from klaudit.readers.source import Source

_MAX_SETTINGS = 5_000
_MAX_VISITS = 50_000  # aliases may lead to one node many times over
_DIALECTS: dict[str, Dialect] = {"json": "json", "toml": "toml"}


def read_keys(source: Source) -> tuple[TreeDocument, ...]:
    """The documents of a YAML, JSON or TOML file, told by its suffix.  Raises UnreadableError."""
    match source.path.rpartition(".")[2].lower():
        case "json":
            from klaudit.readers.json import read_json

            return (read_json(source),)
        case "toml":
            from klaudit.readers.toml import read_toml

            return (read_toml(source),)
    from klaudit.readers.yaml import read_yaml

    return read_yaml(source)


def dotted_keys(document: TreeDocument) -> frozenset[str]:
    """All dotted names of a document, of branches too; of too many, those nearest to the root."""
    names: set[str] = set()
    visits = 0
    pending: deque[tuple[str, Node | None]] = deque([("", document.root)])
    while pending and len(names) < _MAX_SETTINGS and visits < _MAX_VISITS:
        prefix, node = pending.popleft()
        visits += 1
        if isinstance(node, MappingNode):
            for entry in node.in_force:
                name = f"{prefix}.{entry.key}" if prefix else entry.key
                names.add(name)
                pending.append((name, entry.value))
    return frozenset(names)


def file_settings(document: TreeDocument, dialect: Dialect | None = None) -> list[Setting]:
    """The scalar leaves of a document, in order; YAML is read as OmegaConf reads it unless `dialect` says otherwise."""
    source = document.source
    dialect = dialect or _DIALECTS.get(source.path.rpartition(".")[2].lower(), "omegaconf")
    settings: list[Setting] = []
    visits = 0
    pending: list[tuple[str, Node | None, int]] = [("", document.root, 0)]
    while pending and len(settings) < _MAX_SETTINGS and visits < _MAX_VISITS:
        prefix, node, start = pending.pop()
        visits += 1
        if isinstance(node, MappingNode):
            for entry in reversed(node.in_force):
                pending.append((f"{prefix}.{entry.key}" if prefix else entry.key, entry.value, entry.key_start))
        elif isinstance(node, ScalarNode):
            settings.append(_setting(source, prefix, node, start, dialect))
    return settings


def _setting(source: Source, name: str, node: ScalarNode, start: int, dialect: Dialect) -> Setting:
    value: Value = resolve_scalar(node, dialect)
    if isinstance(value, str) and "${" in value:
        value = Unknown((value,), value)
    raw = source.data[node.start : node.end].decode("utf-8", "replace")
    span = source.span(min(start, node.start), node.end)  # an alias points back to where its anchor stands
    return Setting(name, value, span, source.span(node.start, node.end), "file", None, raw)
