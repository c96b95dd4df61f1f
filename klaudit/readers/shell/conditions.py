"""`[ .. ]`, `test` and `[[ .. ]]`: whether they hold, and what they hang on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.lookup import look_up
from klaudit.readers.shell.patterns import Glob
from klaudit.readers.shell.text import Place, Text, hangs_on, merge_names, plain
from klaudit.readers.shell.words import Escaped, Parameter, Plain, Word

MAX_DEPTH = 30
BINARY = frozenset({"=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">", "-nt", "-ot", "-ef"})
_FILE_TESTS = frozenset("-" + letter for letter in "abcdefghkprstuwxGLNOS")
_INTEGER = re.compile(r"\s*[-+]?\d{1,18}\s*")


class Outcome(NamedTuple):
    holds: bool
    hangs: tuple[str, ...] = ()


class Refinement(NamedTuple):
    """If the condition's outcome is `when`, the variable `name` has this value (not known which if None)."""

    name: str
    when: bool
    value: Text | None


class Files(Protocol):
    def file_exists(self, path: str) -> bool:
        """Whether the scanned tree has a file where the script would look for it."""


class BadTestError(ValueError):
    """A test that bash rejects; it fails then."""


def holds(operands: Sequence[Text], expander: Expander, files: Files, place: Place) -> Outcome:
    """`test` with these arguments.  Raises BadTestError."""
    return _Test(operands, expander, files, place).run()


def refinement(words: Sequence[Word], expander: Expander) -> Refinement | None:
    """What a test of these words says about one variable once its outcome is known: `"$X" = value`, `-z "$X"`."""
    spelled = [expander.code.text[word.start : word.end] for word in words]
    if spelled[:1] == ["!"]:
        inner = refinement(words[1:], expander)
        return inner and inner._replace(when=not inner.when)
    if len(words) == 3 and spelled[1] in ("=", "==", "!="):
        left, _, right = words
        name, other = (_variable(left), right) if _variable(left) else (_variable(right), left)
        if name and all(isinstance(part, Plain | Escaped) for part in other.parts):
            literal = Glob(expander.glob(other)[0]).literal
            return None if literal is None else Refinement(name, spelled[1] != "!=", expander.text(other))
    if len(words) == 2 and spelled[0] in ("-n", "-z") and (name := _variable(words[1])):
        return Refinement(name, spelled[0] == "-n", None)
    return None


def _variable(word: Word) -> str:
    """The name, if the word is an expansion of one variable and nothing else."""
    part = word.parts[0] if len(word.parts) == 1 else None
    if isinstance(part, Parameter) and not part.prefix and part.subscript is None and part.operator in ("", ":-", "-"):
        return part.name if part.name[0].isalnum() or part.name[0] == "_" else ""
    return ""


class _Test:
    def __init__(self, operands: Sequence[Text], expander: Expander, files: Files, place: Place) -> None:
        self._operands = operands
        self._texts = [plain(text) for text in operands]
        self._expander = expander
        self._files = files
        self._place = place
        self._at = 0

    def run(self) -> Outcome:
        count = len(self._texts)
        if count == 0:
            return Outcome(False)
        if count == 1:
            return self._non_empty(0)
        if count == 2 and self._texts[0] == "!":
            outcome = self._non_empty(1)
            return Outcome(not outcome.holds, outcome.hangs)
        if count == 3 and self._texts[1] in BINARY:
            return compare(self._operands[0], self._texts[1], self._operands[2])
        outcome = self._or(0)
        if self._at < count:
            raise BadTestError("too many arguments")
        return outcome

    def _non_empty(self, index: int) -> Outcome:
        return Outcome(self._texts[index] != "", hangs_on(self._operands[index]))

    def _peek(self, offset: int = 0) -> str | None:
        index = self._at + offset
        return self._texts[index] if index < len(self._texts) else None

    def _or(self, depth: int) -> Outcome:
        outcome = self._and(depth)
        while self._peek() == "-o":
            self._at += 1
            outcome = either(outcome, self._and(depth))
        return outcome

    def _and(self, depth: int) -> Outcome:
        outcome = self._primary(depth)
        while self._peek() == "-a":
            self._at += 1
            outcome = both(outcome, self._primary(depth))
        return outcome

    def _primary(self, depth: int) -> Outcome:
        first = self._peek()
        if first is None or depth > MAX_DEPTH:
            raise BadTestError("argument expected")
        if self._peek(1) in BINARY and self._peek(2) is not None:
            left, symbol, right = self._operands[self._at], self._texts[self._at + 1], self._operands[self._at + 2]
            self._at += 3
            return compare(left, symbol, right)
        self._at += 1
        if first == "!":
            outcome = self._primary(depth + 1)
            return Outcome(not outcome.holds, outcome.hangs)
        if first == "(":
            outcome = self._or(depth + 1)
            if self._peek() != ")":
                raise BadTestError(") expected")
            self._at += 1
            return outcome
        if first.startswith("-") and len(first) == 2 and self._peek() is not None:
            self._at += 1
            return unary(first, self._operands[self._at - 1], self._expander, self._files, self._place)
        return self._non_empty(self._at - 1)


def compare(left: Text, symbol: str, right: Text) -> Outcome:
    """A comparison of two texts as `test` does it.  Raises BadTestError."""
    hangs = merge_names(hangs_on(left), hangs_on(right))
    first, second = plain(left), plain(right)
    if symbol in ("=", "=="):
        return Outcome(first == second, hangs)
    if symbol == "!=":
        return Outcome(first != second, hangs)
    if symbol in "<>":
        return Outcome(first < second if symbol == "<" else first > second, hangs)
    if symbol in ("-nt", "-ot", "-ef"):
        return Outcome(False, (f"{first} {symbol} {second}",))
    if not (_INTEGER.fullmatch(first) and _INTEGER.fullmatch(second)):
        if hangs:
            return Outcome(False, hangs)
        raise BadTestError("integer expression expected")
    return Outcome(numbers_compare(int(first), symbol, int(second)), hangs)


def numbers_compare(first: int, symbol: str, second: int) -> bool:
    return {
        "-eq": first == second,
        "-ne": first != second,
        "-lt": first < second,
        "-le": first <= second,
        "-gt": first > second,
        "-ge": first >= second,
    }[symbol]


def unary(symbol: str, operand: Text, expander: Expander, files: Files, place: Place) -> Outcome:
    """`-z`, `-f` and the like.  Files of the scanned tree are known to exist; of all others nothing is known."""
    text, hangs = plain(operand), hangs_on(operand)
    if symbol in ("-z", "-n"):
        return Outcome((text == "") == (symbol == "-z"), hangs)
    if symbol in ("-v", "-R"):
        name, _, bracket = text.partition("[")
        key = bracket.rstrip("]") if bracket else None
        found = look_up(expander.host.state, name, place, int(key) if key is not None and key.isdigit() else key)
        return Outcome(found.is_set, hangs_on(found.text))
    if symbol == "-o":
        return Outcome(False, (f"-o {text}",))
    if symbol in _FILE_TESTS:
        if text and symbol in ("-a", "-e", "-f", "-r", "-s") and files.file_exists(text):
            return Outcome(True)
        return Outcome(False, hangs or ((f"{symbol} {text}",) if text else ()))
    raise BadTestError(f"{symbol}: unary operator expected")


def both(first: Outcome, second: Outcome) -> Outcome:
    if not first.holds:
        return first
    return Outcome(
        second.holds, second.hangs if not second.holds and not second.hangs else merge_names(first.hangs, second.hangs)
    )


def either(first: Outcome, second: Outcome) -> Outcome:
    if first.holds:
        return first
    return Outcome(
        second.holds, second.hangs if second.holds and not second.hangs else merge_names(first.hangs, second.hangs)
    )
