"""The file of known findings, `klaudit-baseline/1` (schema: rules/schema/baseline.json).

One row a line, sorted, in ASCII: git merges it line by line, and reviewers see what is added to it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from klaudit import __version__
from klaudit.errors import KlauditError
from klaudit.model import Finding

FORMAT = "klaudit-baseline/1"
FILE_NAME = "klaudit-baseline.json"
MAX_BYTES = 20_000_000
_LONGEST_MESSAGE = 300
_LINE_NUMBER = re.compile(r"\bline \d+")
_LONE_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_AT_ROW = re.compile(r"\$\.findings\[(\d+)\]")
_CONFLICT = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")


class BaselineError(KlauditError):
    """A baseline that cannot be used; the message gives file and line."""

    def __init__(self, path: str, line: int | None, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")


class Row(Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """Findings of one file that are alike: `path` is POSIX, relative to the folder of the baseline.

    `fingerprint` is what Finding.identity is; the message, there for people, also tells which of several alike is the known one.
    """

    path: Annotated[str, Meta(min_length=1)]
    rule: Annotated[str, Meta(pattern=r"^KLA[0-9]{3}$")]
    fingerprint: Annotated[str, Meta(pattern=r"^[0-9a-f]{20}$")]
    message: str
    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["klaudit-baseline/1"]
    klaudit: str
    findings: tuple[Row, ...]


def row_of(finding: Finding, prefix: str) -> Row:
    """`prefix` leads from the folder of the baseline to the root of the scan."""
    path = os.path.normpath(prefix + finding.span.path).replace(os.sep, "/")
    text = _LINE_NUMBER.sub("another line", finding.message.split("\n", 1)[0])[:_LONGEST_MESSAGE]
    return Row(_writable(path), finding.rule, finding.identity, _writable(text))


def read(file: str) -> tuple[Row, ...]:
    """Raises BaselineError for a file that is missing, cannot be read or is anything but a baseline."""
    return rows_in(file, _bytes(file))


def rows_in(file: str, data: bytes) -> tuple[Row, ...]:
    """The rows of the bytes of a baseline.  Raises BaselineError, in the name of the file."""
    try:
        return msgspec.json.decode(data, type=Document).findings
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # ValidationError is a DecodeError
        raise _explained(file, data, error) from None


def write(file: str, rows: Iterable[Row]) -> None:
    """Rows that differ only in their counts are added up.  The file is replaced as a whole.  Raises BaselineError where it cannot be."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for row in rows:
        counts[row.path, row.rule, row.fingerprint, row.message] += row.count
    lines = [json.dumps(msgspec.to_builtins(Row(*key, count))) for key, count in sorted(counts.items())]
    head = f'{{\n  "format": {json.dumps(FORMAT)},\n  "klaudit": {json.dumps(__version__)},\n  "findings": ['
    text = head + (",".join(f"\n    {line}" for line in lines) + "\n  " if lines else "") + "]\n}\n"
    target = Path(os.path.realpath(file))
    scratch = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="ascii", newline="\n", dir=target.parent, delete=False
        ) as stream:
            scratch = stream.name
            stream.write(text)
        Path(scratch).chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        os.replace(scratch, target)
    except OSError as error:
        if scratch is not None:
            with suppress(OSError):
                os.unlink(scratch)
        raise BaselineError(file, None, f"cannot be written: {error.strerror or error}") from None


def _writable(text: str) -> str:
    """Without what JSON cannot hold: bytes of names that are not UTF-8, and halves of characters (`\\ud800` in a string)."""
    return _LONE_HALF.sub("\ufffd", text).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _bytes(file: str) -> bytes:
    try:
        path = Path(file)
        if not path.exists():
            raise BaselineError(file, None, "no such file: `klaudit baseline write` makes one")
        if not path.is_file():  # a pipe or device would block
            raise BaselineError(file, None, "not a file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise BaselineError(file, None, getattr(error, "strerror", None) or str(error)) from None
    if len(data) > MAX_BYTES:
        raise BaselineError(file, None, f"larger than {MAX_BYTES // 1_000_000} MB")
    return data


def _explained(file: str, data: bytes, error: Exception) -> BaselineError:
    """With the line, which the fast decoder does not give: found by reading again what was not accepted."""
    from klaudit.readers.document import MappingNode, SequenceNode
    from klaudit.readers.json import read_json
    from klaudit.readers.source import Source, UnreadableError

    for number, line in enumerate(data.split(b"\n"), 1):
        if line.startswith(_CONFLICT):
            return BaselineError(
                file, number, "left over from a merge: take the rows of both sides, then `klaudit baseline update`"
            )
    source = Source(file, data)
    try:
        root = read_json(source).root
    except UnreadableError as unreadable:
        return BaselineError(file, unreadable.line, str(unreadable))
    rows = root.get("findings") if isinstance(root, MappingNode) else None
    at = _AT_ROW.search(str(error))
    line_number = None
    if at is not None and isinstance(rows, SequenceNode) and int(at[1]) < len(rows.items):
        line_number = source.span(rows.items[int(at[1])].start, rows.items[int(at[1])].end).line
    return BaselineError(file, line_number, f"not a baseline that this version of klaudit reads: {error}")
