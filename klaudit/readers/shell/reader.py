"""Reading a shell script: every command that it would start, its words fully expanded, each character with its place in the bytes."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence

from klaudit.model import Problem, Span
from klaudit.readers.document import Command, Piece, ShellDocument, Word
from klaudit.readers.shell.code import Code
from klaudit.readers.shell.fields import Field
from klaudit.readers.shell.files import Files
from klaudit.readers.shell.machine import Machine, Started
from klaudit.readers.shell.state import ROOT, Value, Variable
from klaudit.readers.shell.text import Fragment, Place, Text, decode, encode, hangs_on, plain
from klaudit.readers.source import Source, UnreadableError

_MAX_BYTES = 4_000_000


def _load_nothing(path: str) -> Source | None:
    return None


def read_shell(
    source: Source,
    *,
    load: Callable[[str], Source | None] = _load_nothing,
    name: str | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    follow_scripts: bool = False,
) -> ShellDocument:
    """The commands that a script starts."""
    data = source.data
    if b"\0" in data:
        raise UnreadableError("binary: has a NUL byte", data.count(b"\n", 0, data.index(b"\0")) + 1)
    if len(data) > _MAX_BYTES:
        raise UnreadableError(f"shell script larger than {_MAX_BYTES // 1_000_000} MB")
    machine = Machine(Files(load), follow_scripts=follow_scripts)
    code = Code(data.decode("latin-1"), source)
    beginning = Place(source, 0, 0)
    given = [Value(_given(argument, beginning)) for argument in arguments]
    variables = {
        key: Variable({0: Value(_given(value, beginning))}, is_exported=True) for key, value in (environment or {}).items()
    }
    machine.run(code, posixpath.join(ROOT, name or source.path), given, variables)
    return ShellDocument(source, _Commands().all(machine.started), tuple(machine.problems))


def _given(text: str, place: Place) -> Text:
    return (Fragment(encode_text(text), place.source, 0, 0),)


def encode_text(text: str) -> str:
    return text.encode().decode("latin-1")


class _Commands:
    def __init__(self) -> None:
        self._spans: dict[tuple[int, int, int], Span] = {}

    def all(self, started: Sequence[Started]) -> tuple[Command, ...]:
        commands: list[Command] = []
        seen: set[tuple[str, ...]] = set()
        for each in started:
            words = tuple(self._word(field, site) for field, site in each.words)
            key = tuple(word.shown for word in words)
            if each.assumes and key in seen:
                continue
            seen.add(key)
            environment = tuple(
                (name, None if hangs_on(text) else decode(plain(text))) for name, text in each.environment
            )
            commands.append(Command(words, self._span(each.place), each.assumes, each.directory, environment))
        return tuple(commands)

    def _word(self, field: Field, site: Place) -> Word:
        pieces = tuple(self._piece(fragment) for fragment in field.text)
        return Word(pieces, self._span(_written_at(field, site)), self._span(site))

    def _piece(self, fragment: Fragment) -> Piece:
        return Piece(
            None if fragment.hangs_on else decode(fragment.text),
            self._span(fragment.place),
            fragment.variable,
            fragment.hangs_on,
            fragment.unset,
        )

    def _span(self, place: Place) -> Span:
        source, start, end = place
        key = (id(source), start, end)
        span = self._spans.get(key)
        if span is None:
            span = self._spans[key] = source.span(start, end)
        return span


def _written_at(field: Field, site: Place) -> Place:
    if field.place is not None:
        return field.place
    text = field.text
    if not text:
        return site
    first = text[0]
    if len(text) == 1 and first.at is None and first.source is site.source and site.start <= first.start <= site.end:
        return site
    joined = _union([piece.place for piece in text])
    if joined is not None and not (joined.source is site.source and site.start <= joined.start and joined.end <= site.end):
        return joined
    joined = _union([piece.at or piece.place for piece in text])
    return joined if joined is not None and not (joined.source is site.source and site.start <= joined.start and joined.end <= site.end) else site


def _union(places: Sequence[Place]) -> Place | None:
    start = places[0]
    end = start.end
    for place in places[1:]:
        if place.source is not start.source or place.start < end:
            return None
        gap = start.source.data[end : place.start]
        if len(gap) > 3 or gap.strip(b"\"'\\\n"):
            return None
        end = place.end
    return Place(start.source, start.start, end)
