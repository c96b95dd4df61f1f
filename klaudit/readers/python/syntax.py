"""A Python file as a tree whose nodes know their bytes: decoding, parsing, positions."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from functools import cached_property, lru_cache

from klaudit.model import Span
from klaudit.patterns import rare
from klaudit.readers.python.grammar import in_older_grammar
from klaudit.readers.python.lexer import LexError
from klaudit.readers.source import Source, UnreadableError

MAX_BYTES = 1_500_000  # a tree can take 500 times the text; the largest hand-written modules have half a megabyte
MAX_RAW = 200  # characters kept of a value's spelling

_BOM = b"\xef\xbb\xbf"
_COOKIE = rare(
    rb"\A(?:\xef\xbb\xbf)?(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)"
)
_UTF8 = {"utf-8", "utf8", "u8", "utf-8-sig", "utf8-sig", "ascii", "us-ascii"}
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Module:
    """One parsed module.  Offsets are into `source.data`, which is UTF-8 whatever the file's own encoding."""

    def __init__(self, source: Source, tree: ast.Module, blanked: frozenset[int]) -> None:
        self.source = source
        self.data = source.data
        self.tree = tree
        self.blanked = blanked  # where a plain string stands for an f-string that `ast` refuses
        self.line_starts = _line_starts(self.data)
        # then the lines and columns here are those of the file
        self._direct = source.parent is None and self.data.isascii() and b"\r" not in self.data.replace(b"\r\n", b"")

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        try:
            return self.line_starts[node.lineno - 1] + node.col_offset
        except IndexError:  # before 3.12, positions inside f-strings may lie anywhere
            return len(self.data)

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        try:
            return self.line_starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[operator]
        except IndexError:
            return len(self.data)

    def span(self, start: int, end: int) -> Span:
        if self._direct:
            starts = self.line_starts
            line, end_line = bisect_right(starts, start), bisect_right(starts, end)
            column, end_column = start - starts[line - 1] + 1, end - starts[end_line - 1] + 1
            return Span(self.source.path, start, end, line, column, end_line, end_column, self.source.cell)
        return self.source.span(start, end)

    def spelling(self, start: int, end: int) -> str:
        """How the source spells a range, shortened."""
        text = self.data[start : min(end, start + 4 * MAX_RAW)].decode("utf-8", "replace")
        return text if len(text) <= MAX_RAW else text[: MAX_RAW - 1] + "…"

    @cached_property
    def package(self) -> tuple[str, ...]:
        """Dotted name, in parts, of the package that relative imports start from, as the path gives it."""
        return tuple(self.source.path.split("/")[:-1])


def parse(source: Source) -> Module:
    """The module in `source`, not to be changed: it may have been parsed before, and may be asked for again.

    Raises UnreadableError, with the line, for what is not Python, is too large or nested too deep.
    """
    return _parsed(source) if source.parent is not None else _of_file(source.path, source.data)


# A tree takes megabytes; settings and formulas are read one after the other, imports again and again.
@lru_cache(maxsize=64)
def _of_file(path: str, data: bytes) -> Module:
    return _parsed(Source(path, data))


def _parsed(source: Source) -> Module:
    if len(source.data) > MAX_BYTES:
        raise UnreadableError(f"Python source larger than {MAX_BYTES / 1_000_000} MB")
    source = _in_utf8(source)
    data = source.data
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")  # not source.text, which would be kept
    except UnicodeDecodeError:
        text = source.text  # raises the error with its line
    try:
        return Module(source, _tree(text), frozenset())
    except SyntaxError as error:
        try:
            older, blanked = in_older_grammar(data)
            if older != data:
                return Module(source, _tree(older.decode("utf-8").removeprefix("\ufeff")), blanked)
        except (SyntaxError, LexError, ValueError, RecursionError, MemoryError):
            pass  # what the first attempt says is about the text as written
        raise _unreadable(source, error) from None
    except (RecursionError, MemoryError):
        raise UnreadableError("Python nested too deep") from None
    except ValueError as error:
        raise UnreadableError(f"not Python: {error}") from None


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are the author's business
        return ast.parse(text)


def _unreadable(source: Source, error: SyntaxError) -> UnreadableError:
    starts = _line_starts(source.data)
    line = min(max(error.lineno or 1, 1), len(starts))
    return UnreadableError(
        f"not Python: {error.msg}", source.line_of(min(starts[line - 1], max(len(source.data) - 1, 0)))
    )


def _line_starts(data: bytes) -> list[int]:
    """Offsets of the lines as the tokenizer counts them; the first begins after a byte order mark."""
    starts = [3 if data.startswith(_BOM) else 0]
    if b"\r" in data:
        starts.extend(match.end() for match in _LINE_END.finditer(data))
    else:
        at = data.find(b"\n")
        while at != -1:
            starts.append(at + 1)
            at = data.find(b"\n", at + 1)
    return starts


def _in_utf8(source: Source) -> Source:
    """The source itself, or where a PEP 263 comment names another encoding, its text in UTF-8, mapped byte for byte."""
    match = _COOKIE.match(source.data) if b"coding" in source.data[:1000] else None
    if match is None or source.data.isascii():
        return source
    name = match[1].decode("ascii", "replace").lower().replace("_", "-")
    if name in _UTF8 or name.startswith("utf-8-"):
        return source
    try:
        text = source.data.decode(name)
        if text.encode(name) != source.data:
            raise UnreadableError(f"encoding {name} does not give the same bytes back", 1)
        data, offsets, ends, here, there = bytearray(), [(0, 0)], {}, 0, 0
        for plain, wide in re.findall(r"([\x00-\x7f]+)|([^\x00-\x7f])", text):
            encoded = (plain or wide).encode("utf-8")
            data += encoded
            here += len(encoded)
            there += len((plain or wide).encode(name))
            if wide:
                offsets.append((here, there))
                ends[here] = there
    except LookupError:
        raise UnreadableError(f"unknown encoding {name}", 1) from None
    except UnicodeError:
        raise UnreadableError(f"not {name}, which its first lines say it is", 1) from None
    if there != len(source.data):
        raise UnreadableError(f"encoding {name} keeps state between characters", 1)
    return source.embed(bytes(data), offsets, ends=ends)
