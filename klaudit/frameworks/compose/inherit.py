"""Config files that name their parents: `defaults: parent.yaml`, or a list of them, relative to the file itself.

Parents are merged depth-first, later ones over earlier ones and the child over all of them; a top-level mapping that says
`_override_: true` takes the place of what was inherited instead of being merged into it.  Overrides follow Hydra's grammar.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from functools import lru_cache

from klaudit.frameworks.compose.configuration import Base, Configuration, Own, UnseenConfig
from klaudit.frameworks.compose.interpolation import malformed
from klaudit.frameworks.compose.items import Branch, FromNodes, InFile, Leaf, Nowhere
from klaudit.frameworks.compose.launch import launch
from klaudit.frameworks.compose.merging import RefusedError, Work
from klaudit.frameworks.compose.overrides import parse_override
from klaudit.model import Problem
from klaudit.readers.document import MappingNode, Node, ScalarNode, SequenceNode, Word
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.source import UnreadableError
from klaudit.tree import TooLargeError, Tree

_MAX_ANCESTORS = 50
_ENDINGS = (".yaml", ".yml")
_REPLACES = "_override_"


def parents(root: Node | None) -> tuple[str, ...]:
    """The parents that a file names, as written; empty where it names none (a Hydra defaults list has no paths with an ending)."""
    value = root.get("defaults") if isinstance(root, MappingNode) else None
    nodes = value.items if isinstance(value, SequenceNode) else () if value is None else (value,)
    names = [resolve_scalar(node, "omegaconf") if isinstance(node, ScalarNode) else None for node in nodes]
    paths = [name for name in names if isinstance(name, str) and name.endswith(_ENDINGS)]
    return tuple(paths) if len(paths) == len(names) else ()


def compose_inherited(
    tree: Tree, path: str | None, overrides: Sequence[Word], *, environment: Mapping[str, str | None] | None = None
) -> Configuration:
    """The configuration of the file at `path` with its parents, then the overrides; without a file, the overrides alone.

    `refused` says why loading it fails.  A parent that the tree does not hold is `unseen`.
    """
    base = Base(Branch({}, Nowhere()), False) if path is None else _families(tree).base(path)
    return launch(base, [parse_override(word) for word in overrides], environment=environment)


class _Families:
    """The files of one tree, each composed once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._bases: dict[str, Base] = {}

    def base(self, path: str, below: tuple[str, ...] = ()) -> Base:
        """The file at `path` over its parents; `below` are the children that led here."""
        if path not in self._bases:
            try:
                base = self._compose(path, below)
            except (UnreadableError, RefusedError, OSError, TooLargeError) as error:
                line = error.line if isinstance(error, UnreadableError) else None
                base = Base(Branch({}, Nowhere()), False, (), (Problem(path, line, str(error)),), f"{path}: {error}")
            self._bases[path] = base
        return self._bases[path]

    def _compose(self, path: str, below: tuple[str, ...]) -> Base:
        if path in below:
            raise RefusedError("the file inherits from itself")
        if len(below) > _MAX_ANCESTORS:
            raise RefusedError("too many generations of parents")
        names, own = self._read(path)
        work = Work(Branch({}, Nowhere()))
        problems: list[Problem] = []
        unseen: list[UnseenConfig] = []
        refused: str | None = None
        for name in names:
            parent = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            if name.startswith("/") or not self._tree.is_file(parent):
                work.forget("", name)
                unseen.append(UnseenConfig("", name))
                problems.append(Problem(path, None, f"the config {name} is not in the tree"))
                continue
            base = self.base(parent, (*below, path))
            problems += base.problems
            unseen += base.unseen
            refused = refused or base.refused
            _merge(work, base.root)
        _merge(work, own)
        return Base(work.root, True, (Own("", own),), tuple(problems), refused, tuple(unseen))

    def _read(self, path: str) -> tuple[tuple[str, ...], Branch]:
        """The parents' names and the file's own content.  Raises UnreadableError."""
        from klaudit.readers.yaml import MAX_NODES, read_yaml

        source = self._tree.source(path)
        documents = read_yaml(source) if source is not None else ()
        if source is None or len(documents) != 1 or not isinstance(documents[0].root, MappingNode):
            raise UnreadableError("a config is one mapping")
        root = documents[0].root
        items = FromNodes(source, "omegaconf")
        content = items.item(root, InFile(source, root))
        if items.duplicates:
            entry = items.duplicates[0]
            raise UnreadableError(f"the key {entry.key} stands twice", source.line_of(entry.key_start))
        if (wrong := malformed(content, MAX_NODES)) is not None:
            raise UnreadableError(wrong[1])
        kept = (
            {key: item for key, item in content.items.items() if key != "defaults"}
            if isinstance(content, Branch)
            else {}
        )
        return parents(root), Branch(kept, content.written)


def _merge(work: Work, content: Branch) -> None:
    """Raises RefusedError."""
    merged = dict(content.items)
    for key, item in content.items.items():
        mark = item.items.get(_REPLACES) if isinstance(item, Branch) else None
        if isinstance(item, Branch) and isinstance(mark, Leaf) and mark.value:
            work.root.items.pop(key, None)
            merged[key] = Branch({name: each for name, each in item.items.items() if name != _REPLACES}, item.written)
    work.merge(Branch(merged, content.written))


@lru_cache(maxsize=4)
def _families(tree: Tree) -> _Families:
    return _Families(tree)
