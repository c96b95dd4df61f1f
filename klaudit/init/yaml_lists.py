"""One more item in a list of a YAML file, in the file's own layout: what was there stays byte for byte."""

from __future__ import annotations

import yaml

from klaudit.fixes.edits import apply
from klaudit.model import Edit
from klaudit.readers.document import Entry, MappingNode, ScalarNode, SequenceNode
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.yaml import read_yaml


class CannotAppendError(ValueError):
    """A file whose list cannot be added to without laying it out anew."""


def append(path: str, data: bytes, key: str, item: str) -> bytes:
    """The file with `item`, a block item that starts with `- `, at the end of the list below the top-level `key`.

    A missing list is added at the end of the file.  Raises CannotAppendError for a file that is not YAML, has several documents, or whose
    list is written in another way.
    """
    root = _root(path, data)
    entry = root.get(key) if root is not None else None
    if root is not None and entry is not None:
        after = _into(path, data, _entry(root, key), item)
    else:
        gap = _line_end(data) if data and not data.endswith(b"\n") else ""
        after = data + f"{gap}{key}:{_line_end(data)}{_laid_out(data, '  ', item)}".encode()
    if not _is_added(data, after, key, item):
        raise CannotAppendError("its layout is too unusual to add to")
    return after


def _root(path: str, data: bytes) -> MappingNode | None:
    """The mapping of the file's one document; None for an empty file."""
    try:
        documents = [document for document in read_yaml(Source(path, data)) if document.root is not None]
    except UnreadableError as error:
        raise CannotAppendError(str(error)) from None
    if not documents:
        return None
    root = documents[0].root
    if len(documents) > 1 or not isinstance(root, MappingNode):
        raise CannotAppendError("it is not one mapping of keys")
    return root


def _entry(root: MappingNode, key: str) -> Entry:
    return next(entry for entry in root.entries if entry.key == key)


def _into(path: str, data: bytes, entry: Entry, item: str) -> bytes:
    node = entry.value
    if isinstance(node, ScalarNode) and node.text in ("", "~", "null"):
        raise CannotAppendError(f"`{entry.key}` is empty")
    is_flow = data[node.start : node.start + 1] == b"["
    if not isinstance(node, SequenceNode) or not (is_flow or data[node.start : node.start + 1] == b"-"):
        raise CannotAppendError(f"`{entry.key}` is not a list")
    if is_flow and node.items:
        raise CannotAppendError(f"`{entry.key}` is a list on one line")
    line = data.rfind(b"\n", 0, node.start) + 1
    indent = "  " if is_flow else data[line : node.start].decode("utf-8", "replace")
    if indent.strip(" "):
        raise CannotAppendError(f"`{entry.key}` does not start on a line of its own")
    stop = data.find(b"\n", node.items[-1].end if node.items else node.end)
    at = len(data) if stop < 0 else stop + 1
    new = (_line_end(data) if stop < 0 else "") + _laid_out(data, indent, item)
    edits = [Edit(path, at, at, new)]
    if is_flow:  # the brackets give way to the lines below
        edits.append(Edit(path, node.start - data[: node.start].endswith(b" "), node.end, ""))
    return apply(data, edits)


def _laid_out(data: bytes, indent: str, item: str) -> str:
    """The item, so much deeper, with the file's line ends."""
    return "".join(indent + line + _line_end(data) for line in item.splitlines())


def _line_end(data: bytes) -> str:
    return "\r\n" if b"\r\n" in data else "\n"


def _is_added(before: bytes, after: bytes, key: str, item: str) -> bool:
    """Whether the item, and nothing else, has come to the file."""
    try:
        old, new, added = (yaml.load(text, Loader=_Plain) for text in (before, after, item))
    except (yaml.YAMLError, RecursionError, ValueError):
        return False
    expected = dict(old or {})
    expected[key] = [*(expected.get(key) or []), *added]
    return bool(new == expected)


class _Plain(yaml.SafeLoader):
    """Reads tags that it does not know (GitLab's `!reference`) as the plain values behind them."""


def _plain(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode):
        return (suffix, loader.construct_mapping(node, deep=True))
    if isinstance(node, yaml.SequenceNode):
        return (suffix, loader.construct_sequence(node, deep=True))
    return (suffix, str(node.value))


_Plain.add_multi_constructor("!", _plain)
