"""From a makefile to its recipes, each line of them a shell script of its own, as make runs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from klaudit.model import Problem
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.make.lines import Line, colon_of, logical_lines
from klaudit.readers.make.variables import Part, Table, TooMuchError
from klaudit.readers.python.shell_text import placeholder, quote_state
from klaudit.readers.source import Source, UnreadableError

MAX_BYTES = 1_000_000
_MAX_RECIPES = 5_000
_ASSIGNMENT = re.compile(
    rb"(?P<words>(?:(?:export|override|private)[ \t]+)*)(?P<name>[^\s:#=+?!]+)[ \t]*(?P<how>\+=|\?=|!=|:{1,3}=|=)[ \t]*"
)
_CONDITION = re.compile(rb"(ifeq|ifneq|ifdef|ifndef|else|endif)\b[ \t]*(.*)\Z", re.DOTALL)
_DEFINE = re.compile(rb"define[ \t]+(?:(?:override|export)[ \t]+)*(\S+)")
_INCLUDE = re.compile(rb"(?:-?include|sinclude|load|-load)\b|\$\(?\{?eval\b|\$[({]call\b")
_EXPORT = re.compile(rb"(un)?export\b[ \t]*(.*)\Z", re.DOTALL)
_SHELL = re.compile(rb"(?:\S*/)?(?:env[ \t]+)?(?:\S*/)?(?:ba|da|k|z)?sh(?:\s|\Z)")
_PREFIXES = b"@-+ \t"
_MAX_EXPORTS = 50


class Recipe(Struct, frozen=True):
    """One line of a recipe as the shell gets it; `assumes` are the conditions of the makefile under which it is there."""

    source: Source
    assumes: tuple[str, ...] = ()


class Makefile(Struct, frozen=True):
    source: Source
    recipes: tuple[Recipe, ...]
    problems: tuple[Problem, ...] = ()


def read_makefile(source: Source) -> Makefile:
    """The recipes of a makefile with its variables expanded: those of an environment that sets none of them.

    Raises UnreadableError for binary data, for what is larger than any makefile, and where recipes are no lines of shell.
    """
    if b"\0" in source.data:
        raise UnreadableError("binary: has a NUL byte", source.data.count(b"\n", 0, source.data.index(b"\0")) + 1)
    if len(source.data) > MAX_BYTES:
        raise UnreadableError(f"makefile larger than {MAX_BYTES // 1_000_000} MB")
    return _Reader(source).read()


class _Waiting(Struct, frozen=True):
    """A line of a recipe: what its variables are, the end of the file decides."""

    line: Line
    targets: tuple[bytes, ...] | None  # None where they cannot be told
    target: tuple[Part, ...] | None
    assumes: tuple[str, ...]


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._table = Table()
        self._of_targets: list[tuple[tuple[bytes, ...] | None, bytes, bytes, Line | None]] = []
        self._exported: dict[bytes, None] = {}
        self._exports_all = False
        self._conditions: list[tuple[str, ...]] = []  # of each level, what its branch assumes
        self._waiting: list[_Waiting] = []
        self._targets: tuple[bytes, ...] | None = None
        self._target: tuple[Part, ...] | None = None
        self._problems: list[Problem] = []

    def read(self) -> Makefile:
        try:
            for line in logical_lines(self._source.data):
                if line.is_recipe:
                    self._recipe(line)
                else:
                    self._own(line.part(line.indented(), len(line.text)))
        except TooMuchError as error:
            raise UnreadableError(f"a makefile with {error}") from None
        recipes = [recipe for each in self._waiting if (recipe := self._finished(each)) is not None]
        return Makefile(self._source, tuple(recipes), tuple(self._problems))

    # --- make's own language ---------------------------------------------------------------------------------------------

    def _own(self, line: Line) -> None:
        text = line.text
        if (condition := _CONDITION.match(text)) is not None:
            self._condition(condition[1], condition[2].strip())
        elif (define := _DEFINE.match(text)) is not None:
            self._table.forget(define[1])
        elif (found := _ASSIGNMENT.match(text)) is not None:
            if b"export" in found["words"]:
                self._exported[found["name"]] = None
            self._assign(found["name"], found["how"], line.part(found.end(), len(text)))
        elif (export := _EXPORT.match(text)) is not None:
            self._export(export[2].split(), line, is_off=bool(export[1]))
        elif _INCLUDE.match(text):
            self._table.include()
        elif (colon := colon_of(text)) is not None:
            self._rule(line, colon)

    def _condition(self, word: bytes, test: bytes) -> None:
        if word == b"endif":
            del self._conditions[-1:]
            return
        shown = test.decode("utf-8", "replace")
        if word != b"else":
            self._conditions.append((f"{word.decode()} {shown}",))
        elif self._conditions:
            *before, last = self._conditions[-1]
            self._conditions[-1] = (*before, f"not {last}", *([shown] if shown else ()))

    def _assign(self, name: bytes, how: bytes, value: Line) -> None:
        if name == b".RECIPEPREFIX" or (name == b"SHELL" and not _SHELL.match(value.text.strip())):
            self._refuse(f"{name.decode()} is set: its recipes are no lines of shell behind tabs", value)
        if b"$" in name:  # nobody knows which one is set
            self._table.include()
        elif self._conditions:
            self._table.forget(name)
        else:
            self._table.assign(name, how, value)

    def _export(self, names: Sequence[bytes], line: Line, *, is_off: bool) -> None:
        if is_off:
            for name in names:
                self._exported.pop(name, None)
        elif names:
            self._exported.update(dict.fromkeys(names))
            for name in names:
                self._table.declare(name, line)
        else:
            self._exports_all = True

    def _rule(self, line: Line, colon: int) -> None:
        text = line.text
        before = self._table.expand(line.part(0, colon).stripped())
        is_known = all(not part.unknown and not part.asked for part in before)
        names = b"".join(part.text for part in before).split() if is_known else []
        self._targets = tuple(names) if is_known else None
        self._target = tuple(before) if len(names) == 1 and b"%" not in names[0] else None
        if b".ONESHELL" in names:
            self._refuse(".ONESHELL: its recipes are scripts, not lines", line)
        after = line.part(colon + (2 if text[colon + 1 : colon + 2] == b":" else 1), len(text))
        after = after.part(after.indented(), len(after.text))
        if (found := _ASSIGNMENT.match(after.text)) is not None:
            value = after.part(found.end(), len(after.text))
            self._of_targets.append((self._targets, found["name"], found["how"], None if self._conditions else value))
            return
        semicolon = after.text.find(b";")
        if semicolon >= 0:
            self._recipe(after.part(semicolon + 1, len(after.text)).stripped())

    def _refuse(self, why: str, line: Line) -> None:
        raise UnreadableError(why, self._source.line_of(line.start))

    # --- recipes -----------------------------------------------------------------------------------------------------------

    def _recipe(self, line: Line) -> None:
        if line.text.strip() and len(self._waiting) < _MAX_RECIPES:
            self._waiting.append(
                _Waiting(line, self._targets, self._target, tuple(chain.from_iterable(self._conditions)))
            )

    def _finished(self, waiting: _Waiting) -> Recipe | None:
        try:
            table = self._table_of(waiting.targets)
            automatic = {b"@": waiting.target} if waiting.target is not None else {}
            parts = _without_prefixes(table.expand(waiting.line, automatic))
            exports = list(self._exports(table, waiting.line.text))
        except TooMuchError as error:
            line = self._source.line_of(waiting.line.start)
            self._problems.append(Problem(self._source.path, line, f"a recipe was not read: {error}"))
            return None
        excerpt = Excerpt(self._source)
        for name, value in exports:
            _export(excerpt, name, value, waiting.line.start)
        _write(excerpt, parts)
        return Recipe(excerpt.embed(), waiting.assumes)

    def _table_of(self, targets: tuple[bytes, ...] | None) -> Table:
        """The variables as a recipe of these targets sees them."""
        if not self._of_targets:
            return self._table
        table = self._table.copy()
        for names, name, how, value in self._of_targets:
            if names is None or targets is None or any(b"%" in each for each in names) or len(targets) > 1:
                table.forget(name)
            elif set(names) & set(targets):
                if value is None:
                    table.forget(name)
                else:
                    table.assign(name, how, value)
        return table

    def _exports(self, table: Table, text: bytes) -> Iterable[tuple[bytes, list[Part]]]:
        """What the shell of a recipe finds in its environment, as far as the recipe may look at it."""
        names = list(dict.fromkeys(table.names() if self._exports_all else self._exported))
        looked_at = [name for name in names if b"$$" + name in text or b"$${" + name in text or b".sh" in text]
        for name in looked_at[:_MAX_EXPORTS]:
            value = table.value_of(name)
            if value is not None and re.fullmatch(rb"[A-Za-z_]\w*", name):
                yield name, value


def _without_prefixes(parts: Sequence[Part]) -> list[Part]:
    """`@`, `-` and `+` before a recipe are make's."""
    parts = list(parts)
    while parts and not parts[0].unknown and not parts[0].asked:
        first = parts[0]
        kept = first.text.lstrip(_PREFIXES)
        if kept:
            start = first.start + len(first.text) - len(kept) if first.is_copied else first.start
            parts[0] = Part(kept, start, first.end, first.is_copied)
            break
        del parts[0]
    return parts


def _write(excerpt: Excerpt, parts: Iterable[Part], quote: str = "") -> None:
    for part in parts:
        if part.unknown or part.asked:
            excerpt.replace(_stand_in(part, quote), part.start, part.end)
            continue
        if part.is_copied:
            excerpt.copy(part.start, part.end)
        else:
            excerpt.replace(part.text, part.start, part.end)
        quote = quote_state(part.text.decode("utf-8", "replace"), quote)


def _export(excerpt: Excerpt, name: bytes, value: Iterable[Part], at: int) -> None:
    """`export NAME='value'; ` before a recipe."""
    excerpt.replace(b"export " + name + b"='", at, at)
    for part in value:
        if part.unknown or part.asked:
            excerpt.replace(_stand_in(part, "'"), part.start, part.end)
        elif part.is_copied and b"'" not in part.text:
            excerpt.copy(part.start, part.end)
        else:
            excerpt.replace(part.text.replace(b"'", b"'\\''"), part.start, part.end)
    excerpt.replace(b"'; ", at, at)


def _stand_in(part: Part, quote: str) -> bytes:
    """What the shell reads in place of a text that make alone knows, or that it has from the environment."""
    if part.unknown:
        return placeholder((part.unknown,), quote)
    variable = "${" + part.asked + "}"
    return f"'\"{variable}\"'".encode() if quote == "'" else variable.encode()
