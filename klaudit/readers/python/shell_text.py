"""Texts that programs hand to a shell or an argument list: as sources for the shell reader, as words of a command."""

from __future__ import annotations

import re

from klaudit.readers.document import Piece, Word
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.python.results import Constant, Fragment, Items, Opaque, Result, Text
from klaudit.readers.python.syntax import Module
from klaudit.readers.source import Source

_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.]+")
_INTERPRETER = "sys.executable"


def shell_source(module: Module, text: Text) -> Source:
    """The text as a shell script.  An unknown part becomes a command substitution that names what decides it."""
    excerpt = Excerpt(module.source)
    quote = ""
    for fragment in text.fragments:
        if fragment.text is None:
            excerpt.replace(placeholder(fragment.hangs_on, quote), fragment.start, fragment.end)
            continue
        quote = quote_state(fragment.text, quote)
        if fragment.verbatim:
            excerpt.copy(fragment.start, fragment.end)
        else:
            excerpt.replace(fragment.text.encode("utf-8", "replace"), fragment.start, fragment.end)
    return excerpt.embed()


def placeholder(hangs_on: tuple[str, ...], quote: str) -> bytes:
    """A command substitution that stands for an unknown text, whatever quotes are open."""
    name = _NOT_IN_NAME.sub("_", "_".join(hangs_on) or "unknown").strip("_.") or "unknown"
    inner = f"$({name})"
    return f"'\"{inner}\"'".encode() if quote == "'" else inner.encode()


def quote_state(text: str, quote: str) -> str:
    """The shell quote that is open after `text`, given the one open before it."""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        at += 1
    return quote


def words_of(module: Module, items: Items) -> tuple[Word, ...]:
    """The elements of an argument list as words."""
    return tuple(_word(module, item, items) for item in items.items)


def word_text(item: Result) -> str | None:
    """The characters of an argument, None where they are not known."""
    match item:
        case Text():
            return item.known
        case Constant():
            return str(item.value)
        case Opaque(hangs_on=(name,)) if name == _INTERPRETER:
            return "python"
        case _:
            return None


def text_range(item: Result) -> tuple[int, int]:
    """Where an argument is written: its literal, or the expression that puts it together."""
    return item.used_range if isinstance(item, Text) and len(item.fragments) > 0 else (item.start, item.end)


def _word(module: Module, item: Result, items: Items) -> Word:
    start, end = text_range(item)
    span = module.span(start, end)
    if isinstance(item, Text):
        pieces = _pieces(module, item)
    else:
        text = word_text(item)
        hangs_on = getattr(item, "hangs_on", ()) or ("?",)
        variable = _INTERPRETER if text is not None and isinstance(item, Opaque) else None
        pieces = (Piece(text, module.span(item.start, item.end), variable, () if text is not None else hangs_on),)
    return Word(pieces, span, module.span(items.start, items.end))


def _pieces(module: Module, text: Text) -> tuple[Piece, ...]:
    merged: list[Fragment] = []
    for fragment in text.fragments:
        last = merged[-1] if merged else None
        joins = last is not None and last.text is not None and fragment.text is not None
        if last is not None and joins and last.end == fragment.start and last.variable == fragment.variable:
            together = (last.text or "") + (fragment.text or "")
            merged[-1] = Fragment(together, last.start, fragment.end, False, last.variable, (), last.site)
        else:
            merged.append(fragment)
    return tuple(Piece(f.text, module.span(f.start, f.end), f.variable, f.hangs_on) for f in merged)
