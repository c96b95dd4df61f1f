"""Parts of command words: what stands before and after a character, and where the characters were written."""

from __future__ import annotations

from msgspec.structs import replace

from klaudit.model import Origin, Span, Unknown, Value
from klaudit.readers.document import Piece, Word


def partition(word: Word, separator: str) -> tuple[Word, Word] | None:
    """The word before and after the first `separator` that is known text; None where there is none."""
    for at, piece in enumerate(word.pieces):
        if piece.text is None or separator not in piece.text:
            continue
        before, _, after = piece.text.partition(separator)
        left, right = _cut(piece, len(before), len(separator))
        head = (*word.pieces[:at], replace(piece, text=before, span=left))
        tail = (replace(piece, text=after, span=right), *word.pieces[at + 1 :])
        return _word(head, word), _word(tail, word)
    return None


def value_of(word: Word) -> Value:
    """The word's text, or Unknown with what it hangs on."""
    text = word.text
    return Unknown(word.hangs_on, word.shown) if text is None else text


def written_in(word: Word) -> tuple[Origin, Span | None]:
    """`override` for a value spelled in the command; `variable`, with the place of the assignment, for one that a variable carries."""
    pieces = [piece for piece in word.pieces if piece.text != "" or piece.unset]
    if len(pieces) == 1 and pieces[0].variable is not None:
        return "variable", None if pieces[0].unset else pieces[0].span
    return "override", None


def cover(first: Span, last: Span) -> Span:
    """From the start of one span to the end of another; the first alone where they are not in one file and order."""
    if first.path != last.path or last.end < first.start:
        return first
    return replace(first, end=last.end, end_line=last.end_line, end_column=last.end_column)


def _word(pieces: tuple[Piece, ...], whole: Word) -> Word:
    here = [piece for piece in pieces if piece.variable is None] or list(pieces)
    return Word(pieces, cover(here[0].span, here[-1].span) if here else whole.span, whole.site)


def _cut(piece: Piece, length: int, separator: int) -> tuple[Span, Span]:
    """The spans of the two sides of a piece, where its characters stand one to one in the file; else the whole piece's."""
    span, text = piece.span, piece.text or ""
    if not text.isascii() or span.end - span.start != len(text) or span.line != span.end_line:
        return span, span
    left = replace(span, end=span.start + length, end_column=span.column + length)
    right = replace(span, start=left.end + separator, column=left.end_column + separator)
    return left, right
