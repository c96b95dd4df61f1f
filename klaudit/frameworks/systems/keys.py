"""A file of keys as settings with dotted names."""

from __future__ import annotations

from klaudit.model import Setting, Unknown
from klaudit.readers.document import MappingNode, Node, SequenceNode, TreeDocument
from klaudit.readers.scalars import Dialect, resolve_scalar
from klaudit.readers.source import Source

_MAX_SETTINGS = 5_000
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
    """All dotted names of a document, of branches too."""
    names: set[str] = set()
    stack: list[tuple[str, Node | None]] = [("", document.root)]
    while stack and len(names) < _MAX_SETTINGS:
        prefix, node = stack.pop()
        if isinstance(node, MappingNode):
            for entry in node.entries:
                name = f"{prefix}.{entry.key}" if prefix else entry.key
                names.add(name)
                stack.append((name, entry.value))
    return frozenset(names)


def file_settings(document: TreeDocument, dialect: Dialect | None = None) -> list[Setting]:
    """The scalar leaves of a document, in order; YAML is read as OmegaConf reads it unless `dialect` says otherwise."""
    source = document.source
    dialect = dialect or _DIALECTS.get(source.path.rpartition(".")[2].lower(), "omegaconf")
    settings: list[Setting] = []

    def visit(prefix: str, node: Node | None, start: int) -> None:
        if len(settings) >= _MAX_SETTINGS or node is None:
            return
        if isinstance(node, MappingNode):
            for entry in node.entries:
                visit(f"{prefix}.{entry.key}" if prefix else entry.key, entry.value, entry.key_start)
            return
        if isinstance(node, SequenceNode):
            return
        value = resolve_scalar(node, dialect)
        if isinstance(value, str) and "${" in value:
            value = Unknown((value,), value)
        raw = source.data[node.start : node.end].decode("utf-8", "replace")
        settings.append(
            Setting(
                prefix,
                value,
                source.span(start, max(node.end, start)),
                source.span(node.start, node.end),
                "file",
                None,
                raw,
            )
        )

    visit("", document.root, 0)
    return settings
