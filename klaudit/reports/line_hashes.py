"""The identity that GitHub gives the line of an alert, `primaryLocationLineHash`, so that alerts are followed when lines move.

GitHub's upload action computes it again and warns where it finds another.  What it computes, in words: the text as UTF-16 code units,
each line end as one LF, without spaces and tabs, and 0xFFFF for the end; of each line the 100 units from its first one on, zeros where
the text ends, as the digits of a number to base 37, modulo 2^64; in hexadecimal, and after a colon how many lines so far had that number.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Container, Iterator

_BLOCK = 100
_BASE = 37
_MASK = 2**64 - 1
_END = "\uffff"


def line_hashes(data: bytes, lines: Container[int], last: int) -> dict[int, str]:
    """The hashes of the wanted lines, numbers from 1 up to `last`, counting LF, CR and CRLF as line ends.

    Empty where the file is not UTF-8: what is then read depends on the reader.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {}
    known: dict[bytes, int] = {}
    seen: Counter[int] = Counter()
    found: dict[int, str] = {}
    for number, block in enumerate(_blocks(text), 1):
        if number > last:
            break
        if block not in known:
            known[block] = _number(block)
        value = known[block]
        seen[value] += 1
        if number in lines:
            found[number] = f"{value:x}:{seen[value]}"
    return found


def _blocks(text: str) -> Iterator[bytes]:
    """For each line the units that are hashed, in little-endian bytes."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "") + _END
    start = 0
    while start < len(text):
        # in characters, which are at least as many as units
        units = text[start : start + _BLOCK].encode("utf-16-le")[: 2 * _BLOCK]
        yield units.ljust(2 * _BLOCK, b"\0")
        at = text.find("\n", start)
        start = len(text) if at == -1 else at + 1


def _number(block: bytes) -> int:
    value = 0
    for unit in struct.unpack(f"<{_BLOCK}H", block):
        value = (value * _BASE + unit) & _MASK
    return value
