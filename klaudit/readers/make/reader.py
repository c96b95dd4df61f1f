"""From a makefile to its recipes, each line of them a shell script of its own, as make runs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice

from msgspec import Struct

from klaudit.model import Problem
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.make.lines import Line, colon_of, logical_lines
from klaudit.readers.make.needs import Needs
from klaudit.readers.make.variables import Part, Table, TooMuchError
from klaudit.readers.python.shell_text import placeholder, quote_state
from klaudit.readers.source import Source, UnreadableError

MAX_BYTES = 1_000_000
_MAX_RECIPES = 5_000
_ASSIGNMENT = re.compile(
    rb"(?P<words>(?:(?:export|override|private)[ \t]+)*)(?P<name>[^\s:#=+?!]+)[ \t]*(?P<how>\+=|\?=|!=|:{1,3}=|=)[ \t]*"
)
_CONDITION = re.compile(rb"(ifeq|ifneq|ifdef|ifndef|else|endif)\b[ \t]*(.*)\Z", re.DOTALL)
_DEFINE = re.compile(rb"(?:(?:override|export|private)[ \t]+)*define[ \t]+([^\s:+?!=]+)")
_UNDEFINE = re.compile(rb"(?:override[ \t]+)?undefine[ \t]+(\S+)[ \t]*\Z")
_INCLUDE = re.compile(rb"(?:-?include|sinclude|load|-load)\b")
_MESSAGE = re.compile(rb"\$[({](?:info|warning|error)\b")
_EVAL = re.compile(rb"\$[({]eval\b")
_EXPORT = re.compile(rb"(un)?export\b[ \t]*(.*)\Z", re.DOTALL)
_SHELL = re.compile(
    rb"(?:\S*/)?(?:env[ \t]+)?(?:\S*/)?(?:ba|da|k|z)?sh(?:\s|\Z)|\$[({]shell (?:which|command -v) (?:ba|da|k|z)?sh[)}]\Z"
)
_PREFIXES = b"@-+ \t"
_MAX_EXPORTS = 50
_MAX_CONDITIONS = 50  # one within or after the other
_MAX_OF_TARGETS = 500
_ASKED_BY_SHELL = re.compile(rb"\$\$\{?([A-Za-z_]\w*)")


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
    rule: int  # the how manieth of the file
    is_one_of_many: bool  # `target::`


class _OfTargets(Struct, frozen=True):
    """A variable that targets have for themselves: unknown ones where `targets` is None, an unknown value where `value` is."""

    targets: frozenset[bytes] | None
    name: bytes
    how: bytes
    value: Line | None
    overrides: bool


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._table = Table()
        self._of_targets: list[_OfTargets] = []
        self._tables: dict[tuple[bytes, ...] | None, Table] = {}  # as the recipes of those targets see them
        self._needs = Needs(self._table.room)
        self._rules = 0
        self._is_one_of_many = False
        self._last_rules: dict[bytes, int] = {}  # by target: the last rule with a recipe for it whatever the conditions
        self._has_eval = False  # where nobody sees what it sets, nor when
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
        if self._has_eval:
            self._table.include()
        recipes: list[Recipe] = []
        for waiting in self._waiting:
            recipe = None if self._is_replaced(waiting) else self._finished(waiting)
            if recipe is not None:
                recipes.append(recipe)
            elif self._table.room.is_used_up:
                break  # all that follow would be as little
        return Makefile(self._source, tuple(recipes), tuple(self._problems))

    # --- make's own language ---------------------------------------------------------------------------------------------

    def _own(self, line: Line) -> None:
        text = line.text
        if (condition := _CONDITION.match(text)) is not None:
            self._condition(condition[1], condition[2].strip())
        elif (define := _DEFINE.match(text)) is not None:
            self._has_eval |= _EVAL.search(self._source.data, line.start, line.end) is not None
            self._table.forget(define[1])
        elif (undefine := _UNDEFINE.match(text)) is not None:
            if self._conditions:
                self._table.forget(undefine[1])
            else:
                self._table.undefine(undefine[1])
        elif (found := _ASSIGNMENT.match(text)) is not None:
            if b"export" in found["words"]:
                self._exported[found["name"]] = None
            self._assign(
                found["name"], found["how"], line.part(found.end(), len(text)), overrides=b"override" in found["words"]
            )
        elif (export := _EXPORT.match(text)) is not None:
            self._export(export[2].split(), line, is_off=bool(export[1]))
        elif _INCLUDE.match(text):
            self._table.include()
        elif (colon := colon_of(text)) is not None:
            self._rule(line, colon)
        elif b"$" in text and not _MESSAGE.match(text):  # what it expands to is read as a line of the makefile
            self._table.include()

    def _condition(self, word: bytes, test: bytes) -> None:
        if word == b"endif":
            del self._conditions[-1:]
            return
        shown = test.decode("utf-8", "replace")
        if word != b"else":
            self._conditions.append((f"{word.decode()} {shown}",))
            if sum(map(len, self._conditions)) > _MAX_CONDITIONS:
                raise TooMuchError(f"more than {_MAX_CONDITIONS} conditions within each other")
        elif self._conditions:
            *before, last = self._conditions[-1]
            if len(before) > _MAX_CONDITIONS:
                raise TooMuchError(f"more than {_MAX_CONDITIONS} conditions, one else the other")
            self._conditions[-1] = (*before, f"not {last}", *([shown] if shown else ()))

    def _assign(self, name: bytes, how: bytes, value: Line, *, overrides: bool) -> None:
        self._refuse_other_shells(name, value)
        self._has_eval |= _EVAL.search(value.text) is not None
        if b"$" in name:  # nobody knows which one is set
            self._table.include()
        elif self._conditions:
            self._table.forget(name)
        else:
            self._table.assign(name, how, value, overrides=overrides)
            if overrides:
                self._table.override(name)

    def _refuse_other_shells(self, name: bytes, value: Line) -> None:
        if name == b".RECIPEPREFIX" or (name == b"SHELL" and not _SHELL.match(value.text.strip())):
            self._refuse(f"{name.decode()} is set: its recipes are no lines of shell behind tabs", value)

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
        self._rules += 1
        self._is_one_of_many = text[colon + 1 : colon + 2] == b":"
        if after.text.startswith(b"="):  # `$(a name) := value`
            self._table.include()
        elif (found := _ASSIGNMENT.match(after.text)) is not None:
            value = after.part(found.end(), len(after.text))
            self._of_targets.append(
                _OfTargets(
                    None if self._targets is None else frozenset(self._targets),
                    found["name"],
                    found["how"],
                    None if self._conditions else value,
                    b"override" in found["words"],
                )
            )
            self._refuse_other_shells(found["name"], value)
            self._has_eval |= _EVAL.search(value.text) is not None
            if len(self._of_targets) > _MAX_OF_TARGETS:
                raise TooMuchError(f"more than {_MAX_OF_TARGETS} variables of targets")
        else:
            semicolon = after.text.find(b";")
            self._need(after.part(0, semicolon if semicolon >= 0 else len(after.text)))
            if semicolon >= 0:
                self._recipe(after.part(semicolon + 1, len(after.text)).stripped())

    def _need(self, prerequisites: Line) -> None:
        parts = self._table.expand(prerequisites)
        is_known = not any(part.unknown or part.asked for part in parts)
        needed = frozenset(b"".join(part.text for part in parts).split()) if is_known else None
        self._needs.add(self._targets or (), needed)

    def _refuse(self, why: str, line: Line) -> None:
        raise UnreadableError(why, self._source.line_of(line.start))

    # --- recipes -----------------------------------------------------------------------------------------------------------

    def _recipe(self, line: Line) -> None:
        if line.text.strip() and len(self._waiting) < _MAX_RECIPES:
            assumes = tuple(chain.from_iterable(self._conditions))
            self._has_eval |= _EVAL.search(line.text) is not None
            self._waiting.append(
                _Waiting(line, self._targets, self._target, assumes, self._rules, self._is_one_of_many)
            )
            if not assumes:
                self._last_rules.update(dict.fromkeys(self._targets or (), self._rules))

    def _is_replaced(self, waiting: _Waiting) -> bool:
        """Whether later rules give all its targets other recipes: make takes those alone."""
        if not waiting.targets or waiting.is_one_of_many or any(b"%" in target for target in waiting.targets):
            return False
        return all(self._last_rules.get(target, 0) > waiting.rule for target in waiting.targets)

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
        if targets not in self._tables:
            self._tables[targets] = self._made_table(targets)
        return self._tables[targets]

    def _made_table(self, targets: tuple[bytes, ...] | None) -> Table:
        self._table.room.use(len(self._of_targets))
        table = self._table.copy()
        for each in self._of_targets:
            if (
                each.targets is None
                or targets is None
                or len(targets) > 1
                or any(b"%" in name for name in each.targets)
            ):
                table.forget(each.name)
            elif targets and targets[0] in each.targets and each.value is not None:
                table.assign(each.name, each.how, each.value, overrides=each.overrides)
            elif (reached := self._needs.reached(each.targets)) is None or not reached.isdisjoint(targets):
                table.forget(each.name)
        return table

    def _exports(self, table: Table, text: bytes) -> Iterable[tuple[bytes, list[Part]]]:
        """What the shell of a recipe finds in its environment, as far as the recipe may look at it."""
        if b".sh" in text:
            looked_at = islice(table.names() if self._exports_all else self._exported, _MAX_EXPORTS)
        else:
            asked = dict.fromkeys(_ASKED_BY_SHELL.findall(text))
            looked_at = islice((name for name in asked if self._exports_all or name in self._exported), _MAX_EXPORTS)
        for name in looked_at:
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
