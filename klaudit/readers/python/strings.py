"""What programs do to strings before they use them, done on fragments, so that every character keeps its place."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence

from klaudit.patterns import rare
from klaudit.readers.python.results import MAX_ITEMS, MAX_TEXT, Constant, Fragment, Opaque, Result, Text, unique

_HOLE = "\ufffc"  # stands for an unknown fragment where characters are counted
_SPEC = rare(r"[<>=^]?[+\- ]?#?0?\d{0,2}[_,]?(?:\.\d{1,2})?[bcdeEfFgGnosxX%]?")
_PERCENT = rare(r"%(?:\((?P<key>[^)]{0,200})\))?(?P<spec>[-+ #0]*\d{0,2}(?:\.\d{1,2})?)(?P<kind>[sdrfgeEGxi%])")


def joined(parts: Sequence[Text], start: int, end: int) -> Result:
    """The parts one after the other."""
    fragments = tuple(fragment for part in parts for fragment in part.fragments)
    if len(fragments) > MAX_ITEMS or sum(len(f.text or "") for f in fragments) > MAX_TEXT:
        return Opaque(unique(name for part in parts for name in part.hangs_on), start, end, "text too long")
    return Text(fragments, start, end)


def sliced(text: Text, begin: int, stop: int) -> Text:
    """Characters `begin`..`stop`, an unknown fragment counting as one."""
    kept, at = [], 0
    for fragment in text.fragments:
        chars = fragment.text if fragment.text is not None else _HOLE
        low, high = max(begin - at, 0), min(stop - at, len(chars))
        at += len(chars)
        if low >= high:
            continue
        if fragment.text is None or (low == 0 and high == len(chars)):
            kept.append(fragment)
        elif fragment.verbatim:
            offset = fragment.start + len(chars[:low].encode("utf-8"))
            width = len(chars[low:high].encode("utf-8"))
            kept.append(Fragment(chars[low:high], offset, offset + width, True, fragment.variable, site=fragment.site))
        else:
            kept.append(
                Fragment(chars[low:high], fragment.start, fragment.end, False, fragment.variable, site=fragment.site)
            )
    start, end = (kept[0].start, kept[-1].end) if kept else (text.start, text.start)
    return Text(tuple(kept), start, end) if end >= start else Text(tuple(kept), start, kept[0].end)


def with_holes(text: Text) -> str:
    """The characters, with one that stands for each unknown fragment."""
    return "".join(_HOLE if fragment.text is None else fragment.text for fragment in text.fragments)


def split(text: Text, separator: str | None = None) -> list[Text]:
    """`str.split`.  Where the text has unknown parts, each is taken to hold no separator."""
    whole = with_holes(text)
    if separator is None:
        return [sliced(text, *match.span()) for match in re.finditer(r"\S+", whole)]
    pieces, at = [], 0
    for part in whole.split(separator):
        pieces.append(sliced(text, at, at + len(part)))
        at += len(part) + len(separator)
    return pieces


def stripped(text: Text, method: str, characters: str | None = None) -> Text:
    """`str.strip`, `lstrip` or `rstrip`."""
    whole = with_holes(text)
    begin, stop = 0, len(whole)
    if method != "rstrip":
        begin = stop - len(whole.lstrip(characters))
    if method != "lstrip":
        stop = len(whole.rstrip(characters))
    return sliced(text, begin, max(begin, stop))


def dedented(text: Text) -> Text:
    """`textwrap.dedent`."""
    whole = with_holes(text)
    lines = whole.split("\n")
    margins = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip(" \t")]
    margin = min(margins, default=0)
    pieces, at = [], 0
    for line in lines:
        stop = at + len(line) + 1
        pieces.append(sliced(text, at + margin, stop) if line.strip(" \t") else sliced(text, at + len(line), stop))
        at = stop
    return Text(tuple(fragment for piece in pieces for fragment in piece.fragments), text.start, text.end)


def formatted(template: Text, positional: Sequence[Result], named: Mapping[str, Result]) -> Text:
    """`str.format`."""
    fragments: list[Fragment] = []
    whole, at, automatic = with_holes(template), 0, 0
    for match in re.finditer(r"\{\{|\}\}|\{([^{}]*)\}", whole):
        fragments.extend(sliced(template, at, match.start()).fragments)
        field_text = sliced(template, *match.span())
        at = match.end()
        if match[1] is None:
            fragments.append(Fragment(match.group()[0], field_text.start, field_text.end))
            continue
        name, _, spec = match[1].partition(":")
        if not name:
            name, automatic = str(automatic), automatic + 1
        if name.isdigit():
            value = positional[int(name)] if int(name) < len(positional) else None
        else:
            value = named.get(name)
        fragments.extend(field(value, spec, field_text.start, field_text.end, name))
    fragments.extend(sliced(template, at, len(whole)).fragments)
    return Text(tuple(fragments), template.start, template.end)


def percent_formatted(template: Text, positional: Sequence[Result], named: Mapping[str, Result]) -> Text:
    """The `%` operator."""
    fragments: list[Fragment] = []
    whole, at, used = with_holes(template), 0, 0
    for match in _PERCENT.finditer(whole):
        fragments.extend(sliced(template, at, match.start()).fragments)
        place = sliced(template, *match.span())
        at = match.end()
        if match["kind"] == "%":
            fragments.append(Fragment("%", place.start, place.end))
            continue
        if match["key"] is not None:
            value = named.get(match["key"])
        else:
            value = positional[used] if used < len(positional) else None
            used += 1
        spec = match["spec"] + (match["kind"] if match["kind"] not in "srid" else "")
        fragments.extend(field(value, spec, place.start, place.end, match["key"] or str(used)))
    fragments.extend(sliced(template, at, len(whole)).fragments)
    return Text(tuple(fragments), template.start, template.end)


def field(value: Result | None, spec: str, start: int, end: int, name: str) -> tuple[Fragment, ...]:
    """What a value put into a text at `start`..`end` gives: its own fragments where it is a text and nothing reshapes it."""
    match value:
        case Text() if not spec:
            return tuple(
                Fragment(f.text, f.start, f.end, f.verbatim, f.variable or name, f.hangs_on, f.site)
                for f in value.fragments
            )
        case Text() if value.known is not None and _SPEC.fullmatch(spec):
            shown = _shown(value.known, spec)
        case Constant() if _SPEC.fullmatch(spec):
            shown = _shown(value.value, spec)
        case Opaque():
            return (Fragment(None, start, end, hangs_on=value.hangs_on or (name,)),)
        case _:
            shown = None
    if shown is None or value is None:
        return (Fragment(None, start, end, hangs_on=(name,)),)
    return (Fragment(shown, value.start, value.end, False, name),)


def _shown(value: None | bool | int | float | str, spec: str) -> str | None:
    try:
        return format(value, spec)
    except (ValueError, TypeError, OverflowError):
        return None


def safe_template(template: str) -> bool:
    """Whether every field of a `str.format` template is a plain name or number."""
    try:
        return all(
            name is None or name.isidentifier() or name.isdigit() or not name
            for _, name, _, _ in string.Formatter().parse(template)
        )
    except ValueError:
        return False
