"""Where something stands, as machines are told: the path from the root of the repository, and columns in UTF-16 code units."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import quote

from msgspec import Struct

from klaudit.model import Evidence, Finding, Span
from klaudit.readers.source import Source
from klaudit.reports.json_text import whole
from klaudit.reports.view import View

_BOM = "\ufeff"
_WORD = re.compile(rb"\w|[^\x00-\x7f]")


class Region(Struct, frozen=True):
    """Lines and columns from 1, the end exclusive.  Columns count UTF-16 code units and leave a byte order mark out."""

    line: int
    column: int
    end_line: int
    end_column: int


def repository_path(path: str, view: View) -> str | None:
    """The path as seen from the root of the repository; None where it does not lie below that."""
    full = posixpath.normpath(view.repository_prefix + path)
    return None if full.startswith(("/", "../")) or full in ("..", ".") else full


def uri(path: str) -> str:
    """A relative path as a URI reference (RFC 3986): all but letters, digits and `-._~/` as bytes in per cent.

    Of a name that is no UTF-8 the odd bytes become U+FFFD: readers refuse URIs that they cannot decode, and with them the whole report.
    """
    return quote(whole(path), safe="/")


def region(span: Span, source: Source | None) -> Region:
    """The part of a span that lies on its first line with a word: alerts are shown where all their lines were changed."""
    if source is None or span.end > len(source.data):  # gone or changed since it was read
        end = span.end_column if span.end_line == span.line else span.column + 1
        return Region(span.line, span.column, span.line, max(end, span.column))
    line, start, end = span.line, span.start, span.end
    parts = source.data[span.start : span.end].split(b"\n")
    for number, part in enumerate(parts):
        if _WORD.search(part):  # a bracket alone says little
            line = span.line + number
            start += len(part) - len(part.lstrip())
            goes_on = b"\\" if number + 1 < len(parts) else b""
            end = start + len(part.strip().removesuffix(goes_on).rstrip())
            break
        start += len(part) + 1
    else:
        start, end = span.start, min(span.end, _line(source.data, span.start)[1])
    column = units(source.data, _line(source.data, start)[0], start) + 1
    return Region(line, column, line, column + units(source.data, start, end))


def exact_region(start: int, end: int, source: Source) -> Region:
    """Bytes `start`..`end` whole, as an edit needs them."""
    line, end_line = (source.data.count(b"\n", 0, offset) + 1 for offset in (start, end))
    (first, _), (last, _) = _line(source.data, start), _line(source.data, end)
    return Region(line, units(source.data, first, start) + 1, end_line, units(source.data, last, end) + 1)


def units(data: bytes, start: int, end: int) -> int:
    """How many UTF-16 code units the bytes `start`..`end` of a file are."""
    part = data[start:end]
    if part.isascii():
        return len(part)
    text = part.decode("utf-8", "replace")
    return _units(text.removeprefix(_BOM) if start == 0 else text)


def provenance(finding: Finding) -> Iterator[Evidence]:
    """What is known of where the finding's values come from: one row a place in a file, without its own."""
    seen = {(finding.span.path, finding.span.line, finding.span.column)}
    for each in finding.related:
        if each.path is None or each.line is None:
            continue
        place = (each.path, each.line, each.span.column if each.span is not None else 0)
        if place not in seen:
            seen.add(place)
            yield each


def _line(data: bytes, offset: int) -> tuple[int, int]:
    """Where the line that holds `offset` starts and ends."""
    stop = data.find(b"\n", offset)
    return data.rfind(b"\n", 0, offset) + 1, len(data) if stop == -1 else stop


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
