"""Files in a newer grammar than the running Python's: what it cannot parse is blanked out, byte for byte, where that loses no formula.

`ast` reads only its own version's grammar; libcst reads newer ones, ten times slower, so it is asked only after a SyntaxError.  Formatted
strings (PEP 701) and type parameters (PEP 695) hold no formula that matters here, and blanking them keeps every position.
"""

from __future__ import annotations

MAX_BYTES = 400_000  # libcst and its positions take about ten seconds a megabyte


def in_plain_grammar(data: bytes) -> bytes | None:
    """The file with newer syntax blanked out; None where libcst cannot read it either, or it is too large to try."""
    if len(data) > MAX_BYTES or b"\x00" in data:
        return None
    import libcst
    from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

    try:
        wrapper = MetadataWrapper(libcst.parse_module(data), unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
    except (libcst.ParserSyntaxError, RecursionError, UnicodeDecodeError):
        return None
    blanked = bytearray(data)
    for node, span in spans.items():
        start, end = span.start, span.start + span.length
        if isinstance(node, libcst.FormattedString):
            quotes = b'"""' if b"\n" in data[start:end] else b'"'
            _blank(blanked, start, end, quotes, quotes)
        elif isinstance(node, libcst.TypeParameters):
            _blank(blanked, start, end)
        elif isinstance(node, libcst.TypeAlias):
            _blank(blanked, start, end, b"0")
    return bytes(blanked)


def _blank(data: bytearray, start: int, end: int, first: bytes = b"", last: bytes = b"") -> None:
    for at in range(start, end):
        if data[at] not in b"\r\n":  # line breaks stay, for the positions
            data[at] = ord(" ")
    data[start : start + len(first)] = first
    data[end - len(last) : end] = last
