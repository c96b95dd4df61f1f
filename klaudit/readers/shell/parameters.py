"""`$name` and `${name...}`: looking up, default values, and cutting and replacing in what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from klaudit.readers.shell.arithmetic import BadExpressionError
from klaudit.readers.shell.automaton import TooCostlyError
from klaudit.readers.shell.fields import Chunk, joined
from klaudit.readers.shell.lookup import Found, elements, look_up, number_of
from klaudit.readers.shell.patterns import Glob
from klaudit.readers.shell.printing import in_quotes
from klaudit.readers.shell.state import Key, Value
from klaudit.readers.shell.text import (
    EMPTY,
    Fragment,
    Place,
    Text,
    at_place,
    cut,
    hangs_on,
    join,
    length,
    located,
    merge_names,
    owned_by,
    plain,
)
from klaudit.readers.shell.words import Parameter, Word

if TYPE_CHECKING:
    from klaudit.readers.shell.expand import Expander

_DEFAULTS = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?"})


class UnsetVariableError(Exception):
    """`set -u` or `${name:?}` ends the script here, since `name` is not set."""

    def __init__(self, name: str, key: Key | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.key = key


def expand_parameter(expander: Expander, part: Parameter) -> list[Chunk]:
    """The chunks that a parameter expansion gives.  Raises UnsetVariableError."""
    return _Expansion(expander, part).chunks()


class _Expansion:
    def __init__(self, expander: Expander, part: Parameter) -> None:
        self._expander = expander
        self._state = expander.host.state
        self._part = part
        self._place = expander.code.place(part.start, part.end)

    def chunks(self) -> list[Chunk]:
        part = self._part
        name, subscript = part.name, self._subscript_text()
        if part.prefix == "!" and not (name in "@*" or subscript in ("@", "*")):
            if part.operator in ("@", "*"):  # ${!prefix@}
                names = sorted(each for each in self._state.variables if each.startswith(name))
                return self._several([Value(at_place(each, self._place)) for each in names], part.operator)
            return self._indirect()
        if name in ("@", "*") or subscript in ("@", "*"):
            return self._all_elements(name, subscript or name)
        if not (part.prefix or part.operator or subscript):
            return self._simple(name)
        key = self._key(name, subscript)
        return self._one(name, key, lambda: look_up(self._state, name, self._place, key))

    def _simple(self, name: str) -> list[Chunk]:
        found = look_up(self._state, name, self._place)
        if not found.is_set:
            return [self._chunk(self._nothing(name, None, found))]
        return [self._chunk(found.text)]

    def _chunk(self, text: Text, place: Place | None = None) -> Chunk:
        return Chunk(text, "quoted" if self._part.quoted else "split", place)

    def _nothing(self, name: str, key: Key | None, found: Found) -> Text:
        """What an unset variable gives."""
        if self._state.options.nounset:
            raise UnsetVariableError(name, key)
        if found.text:
            return found.text
        place = self._place
        return (Fragment("", place.source, place.start, place.start, name, unset=True),)

    def _subscript_text(self) -> str | None:
        subscript = self._part.subscript
        return None if subscript is None else self._expander.code.text[subscript[0] : subscript[1]]

    def _key(self, name: str, subscript: str | None) -> Key | None:
        if subscript is None or self._part.subscript is None:
            return None
        return self._expander.key(name, self._part.subscript, self._place)

    def _indirect(self) -> list[Chunk]:
        """`${!name}`: the variable that `name` names."""
        found = look_up(self._state, self._part.name, self._place, self._key(self._part.name, self._subscript_text()))
        target = plain(found.text)
        name, bracket, rest = target.partition("[")
        if hangs_on(found.text) or not name:
            return [self._chunk(at_place("", self._place, hangs_on(found.text) or (f"!{self._part.name}",)))]
        if bracket and rest[:-1] in ("@", "*"):
            return self._several([value for _, value in elements(self._state, name, self._place)], rest[:-1])
        key: Key | None = None
        if bracket:
            key = int(rest[:-1]) if rest[:-1].isdigit() else rest[:-1]
        return self._one(name, key, lambda: look_up(self._state, name, self._place, key))

    def _one(self, name: str, key: Key | None, find: Callable[[], Found]) -> list[Chunk]:
        part, found = self._part, find()
        if part.operator in _DEFAULTS:
            return self._default(name, key, found)
        text = found.text if found.is_set else self._nothing(name, key, found)
        if not found.is_set and part.operator.startswith("@"):
            return [self._chunk(text)]
        if part.prefix == "#":
            return [self._chunk(at_place(str(length(text)), self._place, hangs_on(text)))]
        return [self._chunk(self._changed(text), None if part.operator else found.place)]

    def _default(self, name: str, key: Key | None, found: Found) -> list[Chunk]:
        """`:-` and its like.  Of a variable that is not known it is not known whether the default applies."""
        operator, hangs = self._part.operator, hangs_on(found.text) if found.is_set else ()
        is_given = found.is_set and (bool(plain(found.text)) or not operator.startswith(":"))
        action = operator[-1]
        if action == "+":
            if is_given or hangs:
                return self._argument(name, hangs, absent=not is_given)
            return [self._chunk(found.text if found.text and not found.is_set else EMPTY)]
        if is_given or (hangs and action == "?"):
            return [self._chunk(found.text)]
        if action == "?":
            raise UnsetVariableError(name, key)
        if action == "-":
            return self._argument(name, hangs)
        argument = self._part.argument
        value = EMPTY if argument is None else self._expander.text(argument)
        value = self._uncertain(owned_by(value, name, None), hangs)
        self._state.assign(name, value, key=key)
        return [self._chunk(value)]

    def _argument(self, name: str, hangs: tuple[str, ...], *, absent: bool = False) -> list[Chunk]:
        argument = self._part.argument
        chunks = [] if argument is None else self._expander.chunks(argument)
        if absent:
            chunks = [chunk._replace(text=EMPTY) for chunk in chunks[:1]] or [self._chunk(EMPTY)]
        kept = [
            chunk._replace(
                text=self._uncertain(owned_by(chunk.text, name, None), hangs),
                mode="quoted"
                if self._part.quoted and chunk.mode != "break"
                else "split"
                if chunk.mode == "plain"
                else chunk.mode,
            )
            for chunk in chunks
        ]
        return kept or [self._chunk(EMPTY)]

    def _uncertain(self, text: Text, hangs: tuple[str, ...]) -> Text:
        """The text, now also hanging on `hangs`."""
        if not hangs:
            return text
        return at_place(plain(text), text[0].place if text else self._place, merge_names(hangs, hangs_on(text)))

    def _all_elements(self, name: str, sign: str) -> list[Chunk]:
        """`${A[@]}`, `$*`, their number, their keys, and what operators make of each."""
        part = self._part
        found = elements(self._state, name, self._place)
        if part.prefix == "#":
            return [self._chunk(number_of([value for _, value in found], self._place))]
        if part.prefix == "!":
            keys = [Value(located(str(key), self._place, value.several), None, value.several) for key, value in found]
            return self._several(keys, sign)
        if part.operator in _DEFAULTS:
            if part.operator[-1] == "+":
                return self._argument(name, ()) if found else [self._chunk(EMPTY)] * (not part.quoted or sign == "*")
            if not found:
                return self._default(name, 0, Found(EMPTY, False))
            return self._several([value for _, value in found], sign)
        if part.operator == ":":
            return self._several(self._slice(name, found), sign)
        values = [value for _, value in found]
        if part.operator:
            values = [value._replace(text=self._changed(value.text, even_empty=True)) for value in values]
        return self._several(values, sign)

    def _several(self, values: Iterable[Value], sign: str) -> list[Chunk]:
        separator = self._state.ifs()[:1] if sign == "*" or self._part.operator == ":" else " "
        if sign == "*" and self._part.quoted:
            return [self._chunk(join([value.text for value in values], separator))]
        between = Chunk(at_place(separator, self._place), "break")
        chunks: list[Chunk] = []
        for value in values:
            if chunks:
                chunks.append(between)
            chunks.append(self._chunk(value.text, value.place)._replace(several=value.several))
        return chunks

    def _slice(self, name: str, found: list[tuple[Key, Value]]) -> list[Value]:
        if name in ("@", "*"):
            found = [(0, Value(at_place(self._state.frame.name, self._place, ("0",)))), *found]
        found = (
            list(enumerate([value for _, value in found])) if any(isinstance(key, str) for key, _ in found) else found
        )
        offset, count = self._offsets()
        if offset < 0:
            offset += (int(found[-1][0]) if found else 0) + 1
        chosen = [value for key, value in found if int(key) >= offset] if offset >= 0 else []
        if not chosen and (several := merge_names(*[value.several for _, value in found])):
            return [Value(at_place("", self._place, several), None, several)]
        return chosen[: max(count, 0)] if count is not None else chosen

    def _offsets(self) -> tuple[int, int | None]:
        return self._number(self._part.argument) or 0, self._number(self._part.replacement)

    def _number(self, word: Word | None) -> int | None:
        if word is None:
            return None
        try:
            return self._expander.number(word, self._place)[0]
        except BadExpressionError:
            return None

    def _changed(self, text: Text, *, even_empty: bool = False) -> Text:
        """What a cutting or replacing operator makes of the text; unknown where either side is."""
        hangs = hangs_on(text)
        is_kept = not even_empty and not hangs and not plain(text) and self._part.operator[:1] != "@"
        if not self._part.operator or is_kept:
            return text
        try:
            changed, more = self._apply(text)
        except TooCostlyError:
            changed, more = EMPTY, (f"${{{self._part.name}{self._part.operator}..}}",)
        if hangs or more:
            return located(plain(changed), self._place, merge_names(hangs, more))
        return changed

    def _apply(self, text: Text) -> tuple[Text, tuple[str, ...]]:
        operator = self._part.operator
        if operator == ":":
            return self._substring(text), ()
        if operator[0] in "#%":
            return self._trimmed(text)
        if operator[0] == "/":
            return self._replaced(text)
        if operator[0] in "^,":
            return self._with_letters(text), ()
        if operator in ("@Q", "@U", "@L", "@u"):
            return self._transformed(text, operator[1]), ()
        return text, (f"${{{self._part.name}{operator}}}",)

    def _substring(self, text: Text) -> Text:
        size = length(text)
        start, count = self._offsets()
        start = start + size if start < 0 else start
        if not 0 <= start <= size:
            return EMPTY
        end = size if count is None else size + count if count < 0 else min(start + count, size)
        return cut(text, start, max(end, start))

    def _glob(self) -> tuple[Glob, tuple[str, ...]]:
        runs, hangs = self._expander.glob(self._part.argument) if self._part.argument is not None else ([], ())
        return Glob(runs), hangs

    def _trimmed(self, text: Text) -> tuple[Text, tuple[str, ...]]:
        operator = self._part.operator
        glob, hangs = self._glob()
        characters, longest = plain(text), len(operator) == 2
        if operator[0] == "#":
            size = glob.prefix(characters, longest=longest)
            return (text if not size else cut(text, size, len(characters))), hangs
        size = glob.suffix(characters, longest=longest)
        return (text if not size else cut(text, 0, len(characters) - size)), hangs

    def _replaced(self, text: Text) -> tuple[Text, tuple[str, ...]]:
        operator = self._part.operator
        glob, hangs = self._glob()
        replacement = EMPTY if self._part.replacement is None else joined(self._expander.chunks(self._part.replacement))
        characters = plain(text)
        matches: list[tuple[int, int]]
        if operator in ("/#", "/%"):
            is_prefix = operator == "/#"
            size = (glob.prefix if is_prefix else glob.suffix)(characters, longest=True)
            edge = 0 if is_prefix else len(characters)
            matches = [] if size is None else [(edge, size) if is_prefix else (edge - size, edge)]
        else:
            matches = glob.find_all(characters, only_first=operator == "/")
        pieces, position = list[Fragment](), 0
        self._expander.host.budget.take_characters(len(matches) * length(replacement))
        for start, end in matches:
            pieces += cut(text, position, start) if start > position else EMPTY
            pieces += replacement
            position = end
        if position < len(characters):
            pieces += cut(text, position, len(characters))
        return tuple(pieces), merge_names(hangs, hangs_on(replacement))

    def _with_letters(self, text: Text) -> Text:
        operator = self._part.operator
        change = str.upper if operator[0] == "^" else str.lower
        glob, _ = self._glob()
        every = glob.literal == ""

        def changed(character: str, position: int) -> str:
            applies = (len(operator) == 2 or position == 0) and (every or glob.matches(character))
            return change(character) if applies and character.isascii() else character

        offset, pieces = 0, list[Fragment]()
        for piece in text:
            characters = "".join([changed(character, offset + i) for i, character in enumerate(piece.text)])
            pieces.append(piece if characters == piece.text else piece._replace(text=characters))
            offset += len(piece.text)
        return tuple(pieces)

    def _transformed(self, text: Text, letter: str) -> Text:
        if letter == "Q":
            return at_place(in_quotes(plain(text)), self._place)
        if letter == "u":
            characters = plain(text)
            return at_place(characters[:1].upper() + characters[1:], self._place)
        change = str.upper if letter == "U" else str.lower
        return tuple([piece._replace(text=change(piece.text)) for piece in text])
