"""Comments that suppress findings, written where the comments' own rules find them: `klaudit suppress`."""

from __future__ import annotations

import ast
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from klaudit.discover.suffixes import is_makefile
from klaudit.fixes.edits import apply
from klaudit.fixes.page import CannotEditError, Page
from klaudit.gate.comments import Piece, pieces_of
from klaudit.gate.directives import META, directives
from klaudit.gate.silencing import Silencer, bytes_of
from klaudit.model import Edit, Finding, Span
from klaudit.readers.source import Source, UnreadableError
from klaudit.tree import Tree

_BOM = b"\xef\xbb\xbf"
_LEADING = re.compile(rb"[ \t>]*")  # indentation, and the quote marks of Markdown
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Refused(Struct, frozen=True):
    """Rules whose findings in a file no comment can suppress, and why."""

    path: str
    rules: tuple[str, ...]
    why: str


class Annotation(Struct):
    """Files as they were read and with their comments; `count` findings are suppressed by them."""

    originals: dict[str, bytes] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    count: int = 0
    refused: list[Refused] = field(default_factory=list)


class _Place(Struct, frozen=True):
    """Where a comment goes: above the line that begins at `at` of the piece, or at the end of the line that ends there."""

    piece: int
    at: int
    is_above: bool


def reason_problem(reason: str) -> str | None:
    """Why a text cannot be the reason of a comment, None where it can."""
    if not reason.strip():
        return "the reason is empty"
    if _CONTROL.search(reason):
        return "the reason must be one line without control characters"
    read = [each.reason for each in directives(f"# klaudit: ignore[KLA101] {reason.strip()}")]
    if read != [reason.strip()]:
        return "the reason must be words, and hold no other tool's or klaudit's own comment"
    return None


def suppress(findings: Iterable[Finding], tree: Tree, reason: str) -> Annotation:
    """Comments for all findings, one a statement, command or entry; each is proven to suppress them and to change nothing else."""
    annotation = Annotation()
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule not in META:
            by_path.setdefault(finding.span.path, []).append(finding)
    for path, group in sorted(by_path.items()):
        _annotate(annotation, path, group, tree, reason)
    return annotation


def _annotate(annotation: Annotation, path: str, findings: list[Finding], tree: Tree, reason: str) -> None:
    """Comments for the findings of one file; those without a place for one are refused, and all of them where the proof fails."""
    refused: dict[str, set[str]] = {}
    try:
        source = tree.source(path)
        if source is None:
            raise CannotEditError("there is no such file")
        _check(source, reason)
        pieces = pieces_of(source)
        page = Page.of(source) if path.endswith(".ipynb") else None
        placed: list[tuple[Finding, _Place]] = []
        for finding in findings:
            try:
                at = _placed(finding, source, pieces)
                placed.append((at, _place(pieces, at)))
            except CannotEditError as error:
                refused.setdefault(str(error), set()).add(finding.rule)
        after = _annotated(source, pieces, page, placed, reason)
    except (CannotEditError, UnreadableError) as error:
        refused = {str(error): {finding.rule for finding in findings}}
    else:
        if placed:
            annotation.originals[path], annotation.contents[path] = source.data, after
            annotation.count += len(placed)
    annotation.refused += [Refused(path, tuple(sorted(rules)), why) for why, rules in refused.items()]


def _check(source: Source, reason: str) -> None:
    """Raises CannotEditError for a file that can have no such comment."""
    if source.path.lower().endswith(".json"):
        raise CannotEditError("JSON has no comments")
    if is_makefile(source.path):
        raise CannotEditError("klaudit writes none into makefiles, where a comment in a recipe would be run")
    if not reason.isascii() and not _is_utf8(source.data):
        raise CannotEditError("the file is not UTF-8, so the reason must be ASCII")


def _annotated(
    source: Source, pieces: list[Piece], page: Page | None, placed: list[tuple[Finding, _Place]], reason: str
) -> bytes:
    """The file with one comment a place.  Raises CannotEditError where that is not proven to be right."""
    rules: dict[_Place, set[str]] = {}
    for finding, place in placed:
        rules.setdefault(place, set()).add(finding.rule)
    edits = [
        _edit(pieces[place.piece], page, place, f"# klaudit: ignore[{', '.join(sorted(ids))}] {reason.strip()}")
        for place, ids in rules.items()
    ]
    after = apply(source.data, edits)
    _prove(source, Source(source.path, after), edits, [finding for finding, _ in placed])
    return after


# --- where a comment goes ------------------------------------------------------------------------------------------------------------


def _placed(finding: Finding, source: Source, pieces: list[Piece]) -> Finding:
    start, end = bytes_of(finding.span, source, pieces)
    return replace(finding, span=replace(finding.span, start=start, end=end))


def _place(pieces: list[Piece], finding: Finding) -> _Place:
    for index, piece in enumerate(pieces):
        offset = _offset_in(piece, finding.span.start)
        if offset is None:
            continue
        unit = piece.unit_at(offset)
        if unit is not None:
            line = piece.line_of(unit)
            _check_line(piece, line)
            return _Place(index, line, is_above=True)
        if piece.nested:
            end = piece.data.find(b"\n", offset)
            end = len(piece.data) if end == -1 else end
            return _Place(index, end - (piece.data[end - 1 : end] == b"\r"), is_above=False)
    raise CannotEditError(f"no statement or entry for a comment on line {finding.span.line}")


def _offset_in(piece: Piece, offset: int) -> int | None:
    """The piece's own offset of a byte of the file; None where it lies outside."""
    if piece.source.parent is None:
        return offset
    here = bisect_left(range(len(piece.data)), offset, key=lambda at: piece.source.span(at, at).start)
    return here if here < len(piece.data) and piece.source.span(here, here).start == offset else None


def _edit(piece: Piece, page: Page | None, place: _Place, comment: str) -> Edit:
    start = place.at
    path = piece.source.path
    if not place.is_above:
        start = piece.source.span(start, start).start
        return Edit(path, start, start, f"  {comment}")
    newline = piece.data.find(b"\n", start)
    newline = piece.data.rfind(b"\n", 0, start) if newline == -1 else newline
    line_end = "\r\n" if piece.data[newline - 1 : newline] == b"\r" else "\n"
    leading = _LEADING.match(piece.data, start + len(_BOM) * piece.data.startswith(_BOM, start))
    indent = leading.group().decode() if leading is not None else ""
    if page is not None:
        at = page.at(piece.source.span(start, start).start)
        return page.edit(at, at, f"{indent}{comment}\n")
    if piece.source.parent is None:
        start += len(_BOM) * (start == 0 and piece.data.startswith(_BOM))
        return Edit(path, start, start, f"{indent}{comment}{line_end}")
    return _edit_of_fence(piece, start, f"{indent}{comment}{line_end}")


def _edit_of_fence(piece: Piece, start: int, text: str) -> Edit:
    """A line above one of fenced code, with what stands before that in the file."""
    line, inside, data = _in_fence(piece, start)
    return Edit(piece.source.path, line, line, data[line:inside].decode() + text)


def _check_line(piece: Piece, start: int) -> None:
    """Raises CannotEditError for a line of fenced code that a comment cannot stand above."""
    if piece.source.parent is None or piece.source.cell is not None or piece.source.path.endswith(".ipynb"):
        return
    line, inside, data = _in_fence(piece, start)
    if _LEADING.fullmatch(data[line:inside]) is None:
        raise CannotEditError("a prompt stands before the command")


def _in_fence(piece: Piece, start: int) -> tuple[int, int, bytes]:
    """Where the line begins in the file, where what is inside the fence does, and the file."""
    root = piece.source.parent
    if root is None or root.parent is not None:
        raise CannotEditError("a comment here would change what the text says")
    inside = piece.source.span(start, start).start
    return root.data.rfind(b"\n", 0, inside) + 1, inside, root.data


# --- the proof ---------------------------------------------------------------------------------------------------------------------------


def _prove(before: Source, after: Source, edits: list[Edit], findings: list[Finding]) -> None:
    """Raises CannotEditError unless the file says what it said, and every finding is suppressed."""
    if list(_meaning(before)) != list(_meaning(after)):
        raise CannotEditError("a comment here would change what the file says")
    silencer = Silencer(after)
    for finding in findings:
        if not silencer.suppressing(replace(finding, span=_moved(finding, edits), launch=None)):
            raise CannotEditError(f"no comment suppresses what stands on line {finding.span.line}")


def _moved(finding: Finding, edits: list[Edit]) -> Span:
    span = finding.span
    before = sum(len(edit.replacement.encode()) for edit in edits if edit.start <= span.start)
    within = sum(len(edit.replacement.encode()) for edit in edits if span.start < edit.start < span.end)
    return replace(span, start=span.start + before, end=span.end + before + within)


def _meaning(source: Source) -> Iterator[object]:
    """What comments do not change: a tree of keys, a syntax tree, commands."""
    match posixpath.splitext(source.path)[1].lower():
        case ".yaml" | ".yml":
            from klaudit.readers.yaml import read_yaml

            for document in read_yaml(source):
                yield from _texts(document.root)
        case ".toml":
            from klaudit.readers.toml import read_toml

            yield from _texts(read_toml(source).root)
        case ".py":
            yield from _python(source.data)
        case _:
            for piece in pieces_of(source):
                yield from piece.statements()


def _python(data: bytes) -> Iterator[object]:
    try:
        yield ast.dump(ast.parse(data))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield from (statement for piece in pieces_of(Source("a.py", data)) for statement in piece.statements())


def _texts(root: object) -> Iterator[object]:
    from klaudit.readers.document import MappingNode, ScalarNode, SequenceNode

    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue  # an alias repeats it
        seen.add(id(node))
        if isinstance(node, ScalarNode):
            yield node.text, node.plain, node.tag
        elif isinstance(node, MappingNode):
            yield tuple(entry.key for entry in node.entries)
            pending += [entry.value for entry in node.entries]
        elif isinstance(node, SequenceNode):
            yield len(node.items)
            pending += node.items


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
