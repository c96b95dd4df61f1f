"""Words to fields: every expansion that bash does, in its order, each character keeping its origin."""

from __future__ import annotations

import re
from typing import Literal, Protocol

from klaudit.readers.shell.arithmetic import evaluate
from klaudit.readers.shell.braces import expand_braces
from klaudit.readers.shell.budget import Budget
from klaudit.readers.shell.code import Code
from klaudit.readers.shell.fields import Chunk, Field, joined, split
from klaudit.readers.shell.lexer import Lexer
from klaudit.readers.shell.lookup import HOME, ArithmeticVariables, number_at
from klaudit.readers.shell.parameters import expand_parameter
from klaudit.readers.shell.state import Key, State
from klaudit.readers.shell.text import EMPTY, Fragment, Place, Text, at_place, hangs_on, merge_names, plain, used_at
from klaudit.readers.shell.words import Arithmetic, Escaped, Parameter, Plain, Substitution, Word

MAX_NESTING = 50  # each takes several calls of ours, of which Python allows a thousand

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)  # also as an argument: `env X=~/folder`
_BLANK = re.compile(r"[ \t\n]")
_TILDE = re.compile(r"~(?=[/:]|$)")


def _is_unbroken(text: Text) -> bool:
    """Whether the text is one word, whole."""
    return any(fragment.text for fragment in text) and not any(_BLANK.search(fragment.text) for fragment in text)


class Host(Protocol):
    """What expansions need from the machine that runs them."""

    state: State
    budget: Budget
    nesting: int  # expansions inside expansions at present

    def substitute(self, code: Code, part: Substitution) -> Text:
        """What the commands of a substitution print."""


class Expander:
    """Expands the words of one Code in the present state of `host`."""

    def __init__(self, host: Host, code: Code) -> None:
        self.host = host
        self.code = code

    def fields(self, word: Word) -> list[Field]:
        """The words that a command gets: none, one or several.  Raises UnsetVariableError and BadExpressionError, as all here."""
        if word.is_simple:
            return [Field(self.code.written(word.start, word.end))]
        if word.is_tame and word.parts and (pieces := self._unsplit(word)) is not None:
            return [Field(pieces)]
        fields: list[Field] = []
        for each in expand_braces(word, self.code.text):
            is_assignment = _ASSIGNMENT.match(self.code.text, each.start, each.end) is not None
            fields += split(self.chunks(each, is_assigned=is_assignment), self.host.state.ifs())
        budget = self.host.budget
        budget.take_words(len(fields))
        budget.take_characters(sum([len(piece.text) for field in fields for piece in field.text]))
        return fields

    def _unsplit(self, word: Word) -> Text | None:
        """The short way for words like `key=$X`: None where an expansion is no plain variable, or may split the word."""
        variables, pieces, is_alone = self.host.state.variables, EMPTY, len(word.parts) == 1
        can_split = "IFS" not in variables
        for part in word.parts:
            if isinstance(part, Plain):
                pieces += self.code.written(part.start, part.end)
                continue
            if not isinstance(part, Parameter) or part.operator or part.prefix or part.subscript:
                return None
            variable = variables.get(part.name)
            scalar = None if variable is None or variable.refers_to else variable.scalar
            if scalar is None or (not part.quoted and not (can_split and _is_unbroken(scalar.text))):
                return None
            pieces += scalar.text if is_alone else used_at(scalar.text, self.code.place(part.start, part.end))
        return pieces

    def text(self, word: Word, *, is_assigned: bool = False) -> Text:
        """The word as one text, without splitting, as in an assignment."""
        return joined(self.chunks(word, is_assigned=is_assigned))

    def glob(self, word: Word) -> tuple[list[tuple[str, bool]], tuple[str, ...]]:
        """The word as a pattern: runs of (characters, whether they stand for themselves), and what it hangs on."""
        chunks = self.chunks(word)
        runs = [(plain(chunk.text), chunk.mode == "quoted") for chunk in chunks if chunk.text]
        return runs, merge_names(*[hangs_on(chunk.text) for chunk in chunks])

    def chunks(self, word: Word, *, is_assigned: bool = False) -> list[Chunk]:
        chunks: list[Chunk] = []
        is_alone = len(word.parts) == 1
        code = self.code
        for index, part in enumerate(word.parts):
            if isinstance(part, Plain):
                start, end, quoted = part
                if quoted:
                    chunks.append(Chunk(code.written(start, end), "quoted"))
                elif code.text.find("~", start, end) == -1:
                    chunks.append(Chunk(code.written(start, end), "plain"))
                else:
                    self._with_tildes(word, index, is_assigned, chunks)
            elif isinstance(part, Escaped):
                chunks.append(Chunk(self._escaped(part), "quoted" if part.quoted else "plain"))
            elif is_alone:
                chunks += self._expanded(part)
            else:
                place = self.code.place(part.start, part.end)
                chunks += [chunk._replace(text=used_at(chunk.text, place)) for chunk in self._expanded(part)]
        return chunks

    def number(self, expression: Word, place: Place) -> tuple[int, tuple[str, ...]]:
        """An arithmetic expression's value, and what it hangs on."""
        text = self.text(expression)
        variables = ArithmeticVariables(self.host.state, place)
        value = evaluate(plain(text), variables)
        return value, merge_names(hangs_on(text), variables.hangs)

    def key(self, name: str, subscript: tuple[int, int], place: Place) -> Key:
        """The key that stands between the brackets after an array's name."""
        word = Lexer(self.code).quoted(*subscript)
        state = self.host.state
        variable = state.variables.get(state.resolve(name))
        if variable is not None and variable.is_associative:
            return plain(self.text(word)).strip("\"'")
        return self.number(word, place)[0]

    def _with_tildes(self, word: Word, index: int, is_assigned: bool, chunks: list[Chunk]) -> None:
        """Unquoted characters in which `~` stands for the home folder: at the start of the word, in values also after colons."""
        part = word.parts[index]
        start = part.start
        for tilde in _TILDE.finditer(self.code.text, part.start, part.end):
            at = tilde.start()
            is_at_start = at == word.start or (is_assigned and self.code.text[at - 1] in ":=" and at > part.start)
            if not is_at_start or (at + 1 == part.end and index + 1 < len(word.parts)):
                continue
            chunks.append(Chunk(self.code.written(start, at), "plain"))
            chunks.append(Chunk(at_place(HOME, self.code.place(at, at + 1), ("HOME",)), "quoted"))
            start = at + 1
        if start < part.end:
            chunks.append(Chunk(self.code.written(start, part.end), "plain"))

    def _escaped(self, part: Escaped) -> Text:
        place = self.code.place(part.start, part.end)
        return (Fragment(part.characters, place.source, place.start, place.end),) if part.characters else EMPTY

    def _expanded(self, part: Parameter | Substitution | Arithmetic) -> list[Chunk]:
        mode: Literal["quoted", "split"] = "quoted" if part.quoted else "split"
        if isinstance(part, Parameter):
            if not (part.operator or part.prefix or part.subscript):  # the short way for most
                variable = self.host.state.variables.get(part.name)
                if variable is not None and not variable.refers_to and (scalar := variable.scalar) is not None:
                    return [Chunk(scalar.text, mode)]
            if self.host.nesting > MAX_NESTING:
                return [Chunk(at_place("", self.code.place(part.start, part.end), (part.name,)), mode)]
            self.host.nesting += 1
            try:
                return expand_parameter(self, part)
            finally:
                self.host.nesting -= 1
        if isinstance(part, Substitution):
            return [Chunk(self.host.substitute(self.code, part), mode)]
        place = self.code.place(part.start, part.end)
        value, hangs = self.number(part.expression, place)
        return [Chunk(number_at(value, place, hangs), mode)]
