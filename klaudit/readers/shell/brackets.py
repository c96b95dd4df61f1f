"""`[[ .. ]]`: words that are not split, patterns, regular expressions, `&&` and `||`."""

from __future__ import annotations

import re
from collections.abc import Callable

from klaudit.readers.shell.arithmetic import BadExpressionError, evaluate
from klaudit.readers.shell.automaton import TooCostlyError
from klaudit.readers.shell.conditions import (
    BINARY,
    MAX_DEPTH,
    BadTestError,
    Files,
    Outcome,
    Refinement,
    both,
    compare,
    either,
    numbers_compare,
    refinement,
    unary,
)
from klaudit.readers.shell.expand import Expander
from klaudit.readers.shell.lexer import Lexer
from klaudit.readers.shell.lookup import ArithmeticVariables
from klaudit.readers.shell.patterns import Glob
from klaudit.readers.shell.regexes import Regex
from klaudit.readers.shell.text import Text, hangs_on, merge_names, plain
from klaudit.readers.shell.words import Word

_OPERATOR = re.compile(r"=~|[=!]?=|-[a-z][a-z](?=[ \t])")


class DoubleBrackets:
    """`[[ .. ]]`, read and evaluated in one go: what a decided `&&` or `||` makes irrelevant is read but not evaluated."""

    def __init__(self, expander: Expander, files: Files, start: int, end: int) -> None:
        self._expander = expander
        self._files = files
        self._text = expander.code.text
        self._lexer = Lexer(expander.code)
        self._at = start
        self._end = end
        self._place = expander.code.place(start, end)
        self._skipping = 0
        self._words: list[Word] = []

    def run(self) -> Outcome:
        """Raises BadTestError, and what expansions raise."""
        outcome = self._or(0)
        if self._peek():
            raise BadTestError("unexpected " + self._text[self._at : self._at + 10])
        return outcome

    def refinement(self) -> Refinement | None:
        return refinement(self._words, self._expander)

    def _peek(self) -> str:
        """The operator here, "w" for a word, nothing at the end."""
        while self._at < self._end and (self._text[self._at] in " \t\r\n" or self._text.startswith("\\\n", self._at)):
            self._at += 1
        if self._at >= self._end:
            return ""
        for symbol in ("&&", "||", "(", ")", "<", ">"):
            if self._text.startswith(symbol, self._at):
                return symbol
        if self._text[self._at] == "!" and self._text[self._at + 1 : self._at + 2] in (" ", "(", "\n"):
            return "!"
        return "w"

    def _or(self, depth: int) -> Outcome:
        outcome = self._and(depth)
        while self._peek() == "||":
            self._at += 2
            outcome = either(outcome, self._skippable(self._and, depth, outcome.holds))
        return outcome

    def _and(self, depth: int) -> Outcome:
        outcome = self._primary(depth)
        while self._peek() == "&&":
            self._at += 2
            outcome = both(outcome, self._skippable(self._primary, depth, not outcome.holds))
        return outcome

    def _skippable(self, parse: Callable[[int], Outcome], depth: int, skipped: bool) -> Outcome:
        self._skipping += skipped
        outcome = parse(depth)
        self._skipping -= skipped
        return outcome

    def _primary(self, depth: int) -> Outcome:
        if depth > MAX_DEPTH:
            raise BadTestError("nested too deeply")
        sign = self._peek()
        if sign == "!":
            self._words.append(Word(self._at, self._at + 1, ()))
            self._at += 1
            outcome = self._primary(depth + 1)
            return Outcome(not outcome.holds, outcome.hangs)
        if sign == "(":
            self._at += 1
            outcome = self._or(depth + 1)
            if self._peek() != ")":
                raise BadTestError(") expected")
            self._at += 1
            return outcome
        if sign != "w":
            raise BadTestError("word expected")
        return self._comparison()

    def _comparison(self) -> Outcome:
        left = self._word()
        symbol = self._text[left.start : left.end]
        following = self._peek()
        if len(symbol) == 2 and symbol[0] == "-" and following == "w" and not self._is_operator():
            operand = self._word()
            return (
                Outcome(False)
                if self._skipping
                else unary(symbol, self._value(operand), self._expander, self._files, self._place)
            )
        if following in ("<", ">"):
            self._at += 1
            self._peek()
            right = self._word()
            return Outcome(False) if self._skipping else compare(self._value(left), following, self._value(right))
        if following != "w":
            if self._skipping:
                return Outcome(False)
            value = self._value(left)
            return Outcome(plain(value) != "", hangs_on(value))
        operator = self._word()
        symbol = self._text[operator.start : operator.end]
        self._peek()
        right = self._pattern_word(is_regex=symbol == "=~")
        self._words.append(right)
        return Outcome(False) if self._skipping else self._compared(left, symbol, right)

    def _is_operator(self) -> bool:
        return _OPERATOR.match(self._text, self._at, self._end) is not None

    def _compared(self, left: Word, symbol: str, right: Word) -> Outcome:
        if symbol in ("=", "==", "!="):
            value = self._value(left)
            runs, hangs = self._expander.glob(right)
            hangs = merge_names(hangs_on(value), hangs)
            try:
                return Outcome(Glob(runs).matches(plain(value)) == (symbol != "!="), hangs)
            except TooCostlyError:
                return Outcome(False, (self._text[right.start : right.end],))
        if symbol == "=~":
            return self._regex(left, right)
        if symbol in BINARY and symbol[0] == "-" and symbol not in ("-nt", "-ot", "-ef"):
            numbers = [self._number(word) for word in (left, right)]
            return Outcome(
                numbers_compare(numbers[0][0], symbol, numbers[1][0]), merge_names(numbers[0][1], numbers[1][1])
            )
        return compare(self._value(left), symbol, self._value(right))

    def _regex(self, left: Word, right: Word) -> Outcome:
        value = self._value(left)
        runs, hangs = self._expander.glob(right)
        pattern = "".join(characters for characters, _ in runs)
        quoted = [is_literal for characters, is_literal in runs for _ in characters]
        hangs = merge_names(hangs_on(value), hangs)
        try:
            return Outcome(Regex(pattern, quoted=quoted).search(plain(value)) is not None, hangs)
        except TooCostlyError:
            return Outcome(False, (self._text[right.start : right.end],))

    def _number(self, word: Word) -> tuple[int, tuple[str, ...]]:
        value = self._value(word)
        variables = ArithmeticVariables(self._expander.host.state, self._place)
        try:
            return evaluate(plain(value), variables), merge_names(hangs_on(value), variables.hangs)
        except BadExpressionError as error:
            raise BadTestError(str(error)) from error

    def _value(self, word: Word) -> Text:
        return self._expander.text(word)

    def _word(self) -> Word:
        word = self._lexer.word(self._at, self._end)
        if word.end == self._at:
            raise BadTestError("word expected")
        self._at = word.end
        self._words.append(word)
        return word

    def _pattern_word(self, *, is_regex: bool) -> Word:
        word = self._lexer.pattern(self._at, self._end, is_regex=is_regex)
        self._at = word.end
        return word
