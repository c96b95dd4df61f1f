"""Comments and entries of YAML and TOML."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import yaml

from klaudit.gate.comments.pieces import Piece, Range
from klaudit.gate.comments.shell import shell_piece
from klaudit.readers.document import MappingNode, Node, ScalarNode, SequenceNode, TreeDocument
from klaudit.readers.embedded import embedded_shell
from klaudit.readers.source import Source
from klaudit.readers.toml import read_toml
from klaudit.readers.yaml import read_yaml

_BOM = b"\xef\xbb\xbf"
_MARKER = b"klaudit:"
_HASH = re.compile(rb"(?:(?<=[ \t\r\n])|\A|(?<=\xef\xbb\xbf))#")
_BLOCK = re.compile(rb"[|>][-+0-9]*")
_IN_TOML = re.compile(
    rb'"""(?:[^\\]|\\.)*?"""(?:"{0,2})|'
    rb"'''.*?'''(?:'{0,2})|"
    rb'"(?:[^"\\\n]|\\.)*"|'
    rb"'[^'\n]*'|(?P<comment>#[^\r\n]*)",
    re.DOTALL,
)
_Loader: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def yaml_pieces(source: Source) -> list[Piece]:
    """The YAML itself, and the shell in its block scalars.  Raises UnreadableError for text that is not YAML."""
    documents = read_yaml(source)
    scalars = list(_scalars(source))
    comments = list(_outside(source.data, scalars))
    pieces = [Piece(source, comments, _entries(documents), nested=True)]
    blocks = [scalar for scalar in scalars if _BLOCK.match(source.data, scalar[0])]
    for document in documents if any(_MARKER in source.data[start:end] for start, end in blocks) else ():
        pieces += _in_blocks(document, blocks)
    return pieces


def toml_piece(source: Source) -> Piece:
    """Raises UnreadableError for text that is not TOML."""
    document = read_toml(source)
    comments = [match.span() for match in _IN_TOML.finditer(source.data) if match["comment"] is not None]
    return Piece(source, comments, _entries((document,)), nested=True)


def _in_blocks(document: TreeDocument, blocks: list[Range]) -> Iterator[Piece]:
    """The shell of a tree, with those comments that stand in a block scalar: elsewhere a line of it is a string in quotes."""
    seen: set[Range] = set()
    for embedded in embedded_shell(document):
        if _MARKER not in embedded.source.data:
            continue
        piece = shell_piece(embedded.source)
        own = [comment for comment in piece.comments if _is_in(blocks, embedded.source.span(*comment).start)]
        whole = embedded.source.span(0, len(embedded.source.data))
        if own and (whole.start, whole.end) not in seen:  # an alias leads to one script many times over
            seen.add((whole.start, whole.end))
            piece.comments = own
            yield piece


def _scalars(source: Source) -> Iterator[Range]:
    """Byte ranges of all scalars, keys included, in order; a block scalar begins at its `|` or `>`."""
    is_ascii, skip = source.data.isascii(), int(source.data.startswith(_BOM))
    loader = _Loader(source.data[len(_BOM) :] if skip else source.data)
    while (token := loader.get_token()) is not None:
        if isinstance(token, yaml.ScalarToken):
            start, end = token.start_mark.index, token.end_mark.index
            if not is_ascii:
                start, end = source.char_to_byte(start + skip), source.char_to_byte(end + skip)
            elif skip:
                start, end = start + len(_BOM), end + len(_BOM)
            if _BLOCK.match(source.data, start) and not token.plain:
                end = start + len(source.data[start:end].rstrip())
            yield start, end


def _outside(data: bytes, scalars: list[Range]) -> Iterator[Range]:
    """Comments that hold klaudit's mark.  The one behind the head of a block scalar belongs to no scalar."""
    at = 0
    while (mark := data.find(_MARKER, at)) != -1:
        line, end = data.rfind(b"\n", 0, mark) + 1, data.find(b"\n", mark)
        end = len(data) if end == -1 else end
        at = end
        for match in _HASH.finditer(data, line, end):
            if not _is_in(scalars, match.start()) or _is_behind_head(data, scalars, match.start()):
                if data.find(_MARKER, match.start(), end) != -1:
                    yield match.start(), end - (data[end - 1 : end] == b"\r")
                break


def _is_behind_head(data: bytes, scalars: list[Range], offset: int) -> bool:
    start, _ = scalars[bisect_right(scalars, (offset, len(data))) - 1]
    head = _BLOCK.match(data, start)
    return head is not None and b"\n" not in data[start:offset] and not data[head.end() : offset].strip()


def _is_in(ranges: list[Range], offset: int) -> bool:
    at = bisect_right(ranges, (offset, offset)) - 1
    at += at + 1 < len(ranges) and ranges[at + 1][0] == offset
    return at >= 0 and ranges[at][0] <= offset < ranges[at][1]


def _entries(documents: Iterable[TreeDocument]) -> list[Range]:
    """Every entry from its key to its value's end, and every item of a list.  What aliases repeat is taken once."""
    units: list[Range] = []
    seen: set[int] = set()
    pending: list[Node] = [document.root for document in documents if document.root is not None]
    while pending:
        node = pending.pop()
        if isinstance(node, ScalarNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            for entry in node.entries:
                units.append((entry.key_start, max(entry.value.end, entry.key_end)))
                pending.append(entry.value)
        elif isinstance(node, SequenceNode):
            for item in node.items:
                units.append((item.start, max(item.end, item.start + 1)))
                pending.append(item)
    return units
