"""The config files of a tree, each read once, and the search path that finds them by name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from klaudit.frameworks.compose.interpolation import malformed
from klaudit.frameworks.compose.items import Branch, FromNodes, InFile, Item
from klaudit.model import Problem
from klaudit.readers.document import MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.tree import TooLargeError, Tree

VersionBase: TypeAlias = Literal["1.1", "1.2", "1.3"]

_HEADER_LENGTH = 512  # characters that Hydra looks at for `# @package`
_DIRECTIVE = re.compile(r"\s*#\s*@")


class DefaultEntry(Struct, frozen=True):
    """One entry of a defaults list as written: a `group` with its options, or (group None) a config by path."""

    group: str | None
    value: str | list[str] | None
    package: str | None = None
    is_optional: bool = False
    is_override: bool = False


class ConfigFile(Struct):
    """A config file: its content without the defaults list, that list, and the package its header names.

    `problem` says why Hydra cannot load it, and ends every launch that needs it.
    """

    path: str
    source: Source
    root: Item | None = None
    defaults: tuple[DefaultEntry, ...] = ()
    package: str | None = None
    problem: Problem | None = None


class SearchPath(Struct, frozen=True):
    """Folders of the tree, in the order of searching, and entries that lie outside it or are unknown."""

    folders: tuple[str, ...]
    unseen: tuple[str, ...] = ()

    def with_entries(self, tree: Tree, entries: Sequence[str], directory: str | None) -> SearchPath:
        """With Hydra's own entries (`file://...`, `pkg://...`) added.

        What is relative is relative to the working directory, which may not be known: the given one is tried first, then the root and
        the folders from it down to the first config folder.
        """
        folders, unseen = list(self.folders), list(self.unseen)
        for entry in entries:
            scheme, _, path = entry.rpartition("://")
            path = path.replace(".", "/") if scheme == "pkg" else path.removeprefix(tree.root.rstrip("/") + "/")
            found = None
            if scheme in ("", "file", "pkg") and not path.startswith("/") and "${" not in path:
                bases = ([] if directory is None else [directory]) + _from_root_to(
                    self.folders[0] if self.folders else ""
                )
                tried = (posixpath.normpath(posixpath.join(base, path)) for base in bases)
                found = next((folder for folder in tried if tree.is_folder(folder)), None)
            if found is None:
                unseen.append(entry)
            else:
                folders.append(found)
        return SearchPath(tuple(folders), tuple(unseen))


class Library(Struct):
    """Reads the config files of one tree."""

    tree: Tree
    _files: dict[tuple[str, VersionBase], ConfigFile | None] = field(default_factory=dict)

    def config(self, search_path: SearchPath, name: str, version_base: VersionBase) -> ConfigFile | None:
        """The first config of that name on the search path; None where there is none in the tree."""
        endings = (".yaml", ".yml") if version_base == "1.1" else (".yaml",)
        file_name = name if name.endswith(endings) else f"{name}.yaml"
        for folder in search_path.folders:
            path = posixpath.normpath(posixpath.join(folder, file_name))
            if self.tree.is_file(path):
                return self.file(path, version_base)
        return None

    def has_group(self, search_path: SearchPath, name: str) -> bool:
        return any(self.tree.is_folder(posixpath.join(folder, name)) for folder in search_path.folders)

    def options(self, search_path: SearchPath, group: str) -> tuple[str, ...]:
        """The names one can choose from in a group."""
        files = (name for folder in search_path.folders for name in self.tree.files(posixpath.join(folder, group)))
        return tuple(sorted({name.removesuffix(".yaml") for name in files if name.endswith(".yaml")}))

    def file(self, path: str, version_base: VersionBase) -> ConfigFile | None:
        key = (path, version_base)
        if key not in self._files:
            self._files[key] = self._read(path, version_base)
        return self._files[key]

    def _read(self, path: str, version_base: VersionBase) -> ConfigFile | None:
        try:
            source = self.tree.source(path)
        except (OSError, TooLargeError) as error:
            source = Source(path, b"")
            return ConfigFile(path, source, problem=Problem(path, None, str(error)))
        if source is None:
            return None
        from klaudit.readers.yaml import read_yaml

        file = ConfigFile(path, source)
        try:
            _fill(file, read_yaml(source), version_base)
        except UnreadableError as error:
            file.problem = Problem(path, error.line, str(error))
        return file


def _from_root_to(folder: str) -> list[str]:
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    return [".", *("/".join(parts[: at + 1]) for at in range(len(parts)))]


def _fill(file: ConfigFile, documents: tuple[TreeDocument, ...], version_base: VersionBase) -> None:
    """Raises UnreadableError for what Hydra cannot load."""
    from klaudit.readers.yaml import MAX_NODES

    if len(documents) > 1:
        raise UnreadableError("several documents in one config")
    document = documents[0] if documents else TreeDocument(file.source, None)
    file.package = _package(file.source.text[:_HEADER_LENGTH])
    node: Node = document.root or MappingNode((), 0, 0)
    if isinstance(node, ScalarNode):
        node = _from_scalar(node)
    items = FromNodes(file.source, "omegaconf")
    root = items.item(node, InFile(file.source, node))
    if items.duplicates:
        entry = items.duplicates[0]
        raise UnreadableError(f"the key {entry.key} stands twice", file.source.line_of(entry.key_start))
    if (wrong := malformed(root, MAX_NODES)) is not None:
        written = wrong[0].written
        raise UnreadableError(wrong[1], written.spans[0].line if isinstance(written, InFile) else None)
    if isinstance(root, Branch) and isinstance(node, MappingNode):
        defaults = node.get("defaults")
        if defaults is not None:
            root = Branch({key: item for key, item in root.items.items() if key != "defaults"}, root.written)
            file.defaults = _defaults(file.source, defaults, version_base)
    file.root = root


def _from_scalar(node: ScalarNode) -> MappingNode:
    """OmegaConf makes a lone text a key without a value."""
    value = resolve_scalar(node, "omegaconf")
    if value is None:
        return MappingNode((), node.start, node.end)
    raise UnreadableError("a config must be a mapping or a list")


def _package(text: str) -> str | None:
    """The `# @package` directive, which must come before any other comment."""
    for line in text.splitlines():
        if not line.strip():
            continue
        if _DIRECTIVE.match(line) is None:
            return None
        words = line.strip().lstrip("#").split()
        if len(words) != 2:
            raise UnreadableError(f"a directive wants a name and a value: {line.strip()}")
        if words[0] == "@package":
            return words[1]
    return None


def _defaults(source: Source, node: Node, version_base: VersionBase) -> tuple[DefaultEntry, ...]:
    if not isinstance(node, SequenceNode):
        raise UnreadableError("defaults must be a list", source.line_of(node.start))
    return tuple(_default(source, item, version_base) for item in node.items)


def _default(source: Source, node: Node, version_base: VersionBase) -> DefaultEntry:
    line = source.line_of(node.start)
    if isinstance(node, ScalarNode):
        path = resolve_scalar(node, "omegaconf")
        if not isinstance(path, str):
            raise UnreadableError("an entry of the defaults list is a text or a mapping", line)
        name, package = _split_package(path)
        return DefaultEntry(None, name, package)
    if not isinstance(node, MappingNode):
        raise UnreadableError("an entry of the defaults list is a text or a mapping", line)
    entries = {entry.key: entry.value for entry in node.entries}
    old_optional = entries.pop("optional", None) if version_base == "1.1" and len(entries) > 1 else None
    if len(entries) != 1:
        raise UnreadableError("an entry of the defaults list has one key", line)
    ((key, value),) = entries.items()
    name, package = _split_package(key)
    *keywords, group = name.split(" ")
    flags = set()
    for keyword in keywords:
        if keyword not in ("optional", "override"):
            break
        flags.add(keyword)
    is_optional = "optional" in flags
    if not is_optional and isinstance(old_optional, ScalarNode):
        is_optional = bool(resolve_scalar(old_optional, "omegaconf"))
    return DefaultEntry(group, _options(value, line), package, is_optional, "override" in flags)


def _options(node: Node, line: int) -> str | list[str] | None:
    if isinstance(node, ScalarNode):
        value = resolve_scalar(node, "omegaconf")
        if value is None or isinstance(value, str):
            return value
    elif isinstance(node, SequenceNode):
        values = [resolve_scalar(item, "omegaconf") if isinstance(item, ScalarNode) else None for item in node.items]
        options = [value for value in values if isinstance(value, str)]
        if len(options) == len(values):
            return options
    raise UnreadableError("an option in the defaults list is a text or a list of texts", line)


def _split_package(key: str) -> tuple[str, str | None]:
    name, at, package = key.partition("@")
    return name, package.partition(":")[0] if at else None
