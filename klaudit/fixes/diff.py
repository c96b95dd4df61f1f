"""Unified diffs that `git apply` and `patch -p1` take."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

_NEEDS_QUOTES = re.compile(r'[\x00-\x1f"\\\x7f-\U0010ffff]')


def unified(path: str, before: bytes | None, after: bytes) -> Iterator[str]:
    """Lines with their ends; `before` is None for a new file.

    Bytes that are not UTF-8 become surrogate escapes, so that the text can be written back as it was.
    """
    old, new = _lines(before or b""), _lines(after)
    name = "/dev/null" if before is None else _name("a", path)
    for line in difflib.unified_diff(old, new, name, _name("b", path), lineterm="\n"):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    """Lines as git sees them: only \\n ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", data.decode("utf-8", "surrogateescape"))


def _name(side: str, path: str) -> str:
    """As git writes it: quoted where it holds what could be mistaken."""
    name = f"{side}/{path}"
    if _NEEDS_QUOTES.search(name) is None:
        return name + "\t" if " " in name else name
    escaped = "".join(
        {34: '\\"', 92: "\\\\", 9: "\\t", 10: "\\n"}.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
        for byte in name.encode("utf-8", "surrogateescape")
    )
    return f'"{escaped}"'
