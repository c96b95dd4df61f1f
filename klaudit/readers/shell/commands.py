"""From what the machine started to the document's commands, whose spans point into files on disk."""

from __future__ import annotations

from collections.abc import Sequence

from klaudit.model import Span
from klaudit.readers.document import Command, Piece, Word
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.machine import Started
from klaudit.readers.shell.text import Place, decode, hangs_on, plain
from klaudit.readers.source import Source

_MAX_GAP = 3  # bytes between neighbouring pieces of one word: quotes and continuations


def to_commands(started: Sequence[Started]) -> tuple[Command, ...]:
    """One command each; under an assumption only those that are not started anyway."""
    converter = _Converter()
    commands: list[Command] = []
    seen: set[tuple[str, ...]] = set()
    for each in started:
        key = tuple([_shown(field) for field, _ in each.words])
        if each.assumes and key in seen:
            continue
        seen.add(key)
        commands.append(converter.command(each))
    return tuple(commands)


def _shown(field: Field) -> str:
    """The word with names in place of what is not known: words that show alike are alike."""
    return "".join(["\0".join(("", *piece.hangs_on)) if piece.hangs_on else piece.text for piece in field.text])


class _Converter:
    def __init__(self) -> None:
        self._spans: dict[tuple[Source, int, int], Span] = {}

    def command(self, started: Started) -> Command:
        return Command(
            tuple([self._word(field, site) for field, site in started.words]),
            self._span(*started.place),
            started.assumes,
            started.directory,
            tuple([(name, None if hangs_on(text) else decode(plain(text))) for name, text in started.environment]),
            None if started.called_at is None else self._span(*started.called_at),
            started.taken,
            started.called,
        )

    def _word(self, field: Field, site: Place) -> Word:
        site_span = self._span(*site)
        pieces = tuple(
            [
                Piece(None if hangs else decode(text), self._span(source, start, end), variable, hangs, unset)
                for text, source, start, end, variable, hangs, unset, _ in field.text
            ]
        )
        if len(pieces) == 1 and pieces[0].span is site_span:
            return Word(pieces, site_span, site_span)
        written = _written_at(field, site)
        return Word(pieces, site_span if written is site else self._span(*written), site_span)

    def _span(self, source: Source, start: int, end: int) -> Span:
        key = (source, start, end)
        span = self._spans.get(key)
        if span is None:
            span = self._spans[key] = source.span(start, end)
        return span


def _written_at(field: Field, site: Place) -> Place:
    """Where a word is written: in an array's assignment, in the assignment of a variable that is expanded alone, or at its site."""
    if field.place is not None:
        return field.place
    if not field.text:
        return site
    first = field.text[0]
    if first.at is None and first.source is site.source and site.start <= first.start and first.end <= site.end:
        return site  # the command itself spells it, at least in part
    for places in ([piece.place for piece in field.text], [piece.at or piece.place for piece in field.text]):
        together = _together(places)
        if together is not None:
            return site if _is_inside(together, site) else together
    return site


def _is_inside(place: Place, site: Place) -> bool:
    return place.source is site.source and site.start <= place.start and place.end <= site.end


def _together(places: Sequence[Place]) -> Place | None:
    """The stretch that the places cover, if nothing but quotes stands between them."""
    source, start, end = places[0]
    for place in places[1:]:
        if place.source is not source or place.start < start:
            return None
        gap = source.data[end : place.start]
        if len(gap) > _MAX_GAP or gap.strip(b"\"'\\\r\n"):
            return None
        end = max(end, place.end)
    return Place(source, start, end)
