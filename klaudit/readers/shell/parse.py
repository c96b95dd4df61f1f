"""Shell grammar: from Code to a Program, statement by statement, as bash reads a script.

The grammar is small once words are read exactly, and words have to be read here: whoever edits a word needs the place of each of its
characters, through quotes and expansions.  A statement that cannot be read is reported, and reading goes on after its first line.
"""

from __future__ import annotations

import re
from typing import TypeVar

from klaudit.readers.shell.code import Code
from klaudit.readers.shell.cursor import Cursor, UnreadableStatementError
from klaudit.readers.shell.lexer import Lexer
from klaudit.readers.shell.program import (
    Branch,
    Case,
    Define,
    Evaluate,
    ForEach,
    Jump,
    Loop,
    LoopTest,
    Negate,
    Next,
    Program,
    Range,
    Redirected,
    Restore,
    Return,
    Run,
    Stage,
    Subshell,
    Succeed,
    insert,
    mark_tested,
)
from klaudit.readers.shell.words import Word

_C = TypeVar("_C", Branch, LoopTest)

_MAX_DEPTH = 30  # compound commands inside compound commands
_MAX_STAGES = 100  # of one pipeline
_MAX_ERRORS = 50  # a file with more statements that cannot be read is no script

_DELIMITED = r"(?=[\s;&|()<>]|\\\n|\Z)"
_RESERVED = re.compile(rf"(?:if|while|until|for|select|case|function|coproc|time|!|\{{|\[\[){_DELIMITED}")
_STOP = re.compile(rf"(?:then|elif|else|fi|do|done|esac|\}}){_DELIMITED}|;;&|;;|;&|\)")
_FUNCTION = re.compile(r"([^\s\\'\"`$|&;<>(){}=#][^\s\\'\"`$|&;<>()=]*)[ \t]*\([ \t]*\)")
_IN = re.compile(rf"in{_DELIMITED}")
_EMPTY_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_TIME_OPTION = re.compile(r"[ \t]*-p(?=\s)")


def parse(code: Code) -> Program:
    """The code's program, parsed once."""
    if code.program is None:
        code.program = _Parser(code).program()
    return code.program


class _Parser(Cursor):
    """Recursive descent that emits instructions as it goes; what turns out to be wrapped by something is wrapped afterwards."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self._lexer = Lexer(code)
        self._errors: list[tuple[int, str]] = []
        self._last_end = 0  # where the last command ended
        self._depth = 0

    def program(self) -> Program:
        while not self.skip_between() and len(self._errors) < _MAX_ERRORS:
            start, size = self.at, len(self.out)
            if self._errors and (stray := _STOP.match(self.text, start)):  # the end of a statement that was not read
                self.at = stray.end()
                continue
            try:
                self._statement()
            except UnreadableStatementError as error:
                self._errors.append((error.position, str(error)))
                del self.out[size:]
                self._depth = 0
                self.at = self.next_line(start)
        self.out.append(Return())
        return Program(self.out, self._errors)

    # --- lists and pipelines -------------------------------------------------------------------------------------------------------

    def _list(self, *stops: str) -> str:
        """Statements up to one of these words, which is consumed."""
        while not self.skip_between():
            if stop := _STOP.match(self.text, self.at):
                if stop.group() not in stops:
                    raise self.unexpected()
                self.at = stop.end()
                return stop.group()
            self._statement()
        raise UnreadableStatementError(self.at, "unexpected end of the script")

    def _statement(self) -> None:
        """`a && b || c`, up to and including a `;` or `&`."""
        first = len(self.out)
        self._and_or()
        self.skip_blanks()
        following = self.text[self.at : self.at + 2]
        if following[:1] == "&":
            self.wrap(first, len(self.out), Subshell())
            self.out.append(Succeed())
            self.at += 1
        elif following[:1] == ";" and following not in (";;", ";&"):
            self.at += 1
        elif following and following[0] not in "\n#\r" and not _STOP.match(self.text, self.at):
            raise self.unexpected()

    def _and_or(self) -> None:
        first, start, branches = len(self.out), self.at, list[Branch]()
        self._pipeline()
        while self.text.startswith(("&&", "||"), self.skip_blanks()):
            mark_tested(self.out, first, len(self.out))
            first = len(self.out)
            branches.append(self.add(Branch(self.text[self.at] == "|", (start, self._last_end))))
            self.at += 2
            self.skip_between()
            self._pipeline()
            branches[-1].target = len(self.out)
        for branch in branches:
            branch.join = len(self.out)

    def _pipeline(self) -> None:
        first, is_negated = len(self.out), False
        while (prefix := _RESERVED.match(self.text, self.at)) and prefix.group() in ("!", "time"):
            is_negated ^= prefix.group() == "!"
            self.at = prefix.end()
            if prefix.group() == "time" and (option := _TIME_OPTION.match(self.text, self.at)):
                self.at = option.end()
            self.skip_blanks()
        stages = [first]
        self._command()
        while self.text.startswith("|", self.skip_blanks()) and not self.text.startswith("||", self.at):
            if len(stages) == _MAX_STAGES:
                raise UnreadableStatementError(self.at, "pipeline too long")
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self.skip_between()
            stages.append(len(self.out))
            self._command()
        if len(stages) > 1:
            ends = [*stages[1:], len(self.out)]
            mark_tested(self.out, first, stages[-1])
            for index in reversed(range(len(stages))):
                self.wrap(stages[index], ends[index], Stage(index == 0, index == len(stages) - 1))
        if is_negated:
            mark_tested(self.out, first, len(self.out))
            self.out.append(Negate())

    # --- commands --------------------------------------------------------------------------------------------------------------------

    def _command(self) -> None:
        text, start, first = self.text, self.at, len(self.out)
        reserved = _RESERVED.match(text, start)
        if reserved is None and not text.startswith("(", start):
            if function := _FUNCTION.match(text, start):
                self.at = function.end()
                self._function(function[1])
            else:
                self._simple()
            return
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableStatementError(start, "commands nested too deeply")
        if reserved is None:
            self._parenthesised()
        else:
            self.at = reserved.end()
            self._compound(reserved.group(), first)
        self._depth -= 1
        redirects, self.at = self._lexer.redirects(self.at)
        if redirects:
            insert(self.out, first, Redirected(redirects))
            self.out.append(Restore())
        self._last_end = self.at

    def _compound(self, word: str, first: int) -> None:
        if word == "{":
            self._list("}")
        elif word == "[[":
            end = self._lexer.brackets_end(self.at)
            self.out.append(Evaluate("[[", (self.at, end)))
            self.at = self.after(end, "]]")
        elif word == "if":
            self._if()
        elif word in ("while", "until"):
            self._while(word == "until")
        elif word == "case":
            self._case()
        elif word == "function":
            self.skip_blanks()
            name = self.take_name()
            if parentheses := _EMPTY_PARENTHESES.match(self.text, self.at):
                self.at = parentheses.end()
            self._function(name)
        elif word in ("for", "select"):
            self._for()
            if word == "select":  # it asks the user
                del self.out[first:]
        else:  # coproc
            self.skip_blanks()
            self._command()

    def _simple(self) -> None:
        if _STOP.match(self.text, self.at):
            raise self.unexpected()
        command = self._lexer.simple_command(self.at)
        unterminated = self._lexer.take_unterminated()
        if unterminated is not None:
            raise UnreadableStatementError(unterminated, "quote or expansion without an end")
        if command.end == self.at:
            raise self.unexpected()
        if any(not each.target.parts and each.operator not in ("<<", "<<<") for each in command.redirects):
            self._errors.append((self.at, "redirection without a target"))
        self.out.append(Run(command))
        self.at, self._last_end = command.end, command.words_end

    def _parenthesised(self) -> None:
        text, start = self.text, self.at
        if text.startswith("((", start):
            end = self.code.scanner.closing(start + 2, "a")
            if text.startswith("))", end):
                self.out.append(Evaluate("((", (start + 2, end)))
                self.at = end + 2
                return
        self.at += 1
        subshell = self.add(Subshell())
        self._list(")")
        self.out.append(Return())
        subshell.end = len(self.out)

    def _if(self) -> None:
        jumps, branches, word = list[Jump](), list[Branch](), "if"
        while word in ("if", "elif"):
            branch = self._condition("then", Branch(False, (0, 0)))
            branches.append(branch)
            word = self._list("elif", "else", "fi")
            if word != "fi":
                jumps.append(self.add(Jump()))
            branch.target = len(self.out)
        if word == "else":
            self._list("fi")
        for jump in jumps:
            jump.target = len(self.out)
        for branch in branches:
            branch.join = len(self.out)

    def _condition(self, stop: str, test: _C) -> _C:
        """Commands whose outcome `test` looks at."""
        self.skip_between()
        first, start = len(self.out), self.at
        self._list(stop)
        mark_tested(self.out, first, len(self.out))
        test.condition = (start, max(self._last_end, start))
        return self.add(test)

    def _while(self, until: bool) -> None:
        loop = self.add(Loop())
        loop.again = len(self.out)
        test = self._condition("do", LoopTest(until, (0, 0)))
        self._list("done")
        self.out.append(Jump(loop.again))
        loop.end = test.end = len(self.out)

    def _for(self) -> None:
        self.skip_blanks()
        if self.text.startswith("((", self.at):
            self._counting_for()
            return
        name, words = self.take_name(), None
        self.skip_between()
        if found := _IN.match(self.text, self.at):
            words, self.at = self._lexer.words(found.end())
        each = self.add(ForEach(name, words))
        again = len(self.out)
        following = self.add(Next(name))
        self._loop_body()
        self.out.append(Jump(again))
        each.end = following.end = len(self.out)

    def _counting_for(self) -> None:
        """`for ((first; condition; update))`."""
        end = self.code.scanner.closing(self.at + 2, "a")
        first, condition, update = _header(self.text, self.at + 2, end)
        self.at = self.after(end, "))")
        self.out.append(Evaluate("((", first, True))
        loop, test_at = self.add(Loop()), len(self.out)
        is_endless = not self.text[slice(*condition)].strip()
        self.out.append(Succeed() if is_endless else Evaluate("((", condition, True))
        test = self.add(LoopTest(False, condition))
        self._loop_body()
        loop.again = len(self.out)
        self.out.append(Evaluate("((", update, True))
        self.out.append(Jump(test_at))
        loop.end = test.end = len(self.out)

    def _loop_body(self) -> None:
        self.skip_blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        self.skip_between()
        opener = "{" if self.text.startswith("{", self.at) else "do"
        if not self.text.startswith(opener, self.at):
            raise self.unexpected()
        self.at += len(opener)
        self._list("}" if opener == "{" else "done")

    def _case(self) -> None:
        self.skip_blanks()
        subject = self._lexer.word(self.at)
        self.at = subject.end
        self.skip_between()
        if not (found := _IN.match(self.text, self.at)):
            raise self.unexpected()
        self.at = found.end()
        case, jumps, stop = self.add(Case(subject)), list[Jump](), ""
        while stop != "esac":
            if self.skip_between():
                raise self.unexpected()
            if self.text.startswith("esac", self.at):
                self.at += 4
                break
            case.arms.append((self._patterns(), len(self.out)))
            stop = self._list(";;", ";&", ";;&", "esac")
            if stop != ";&":
                jumps.append(self.add(Jump()))
        for jump in jumps:
            jump.target = len(self.out)
        case.join = len(self.out)

    def _patterns(self) -> tuple[Word, ...]:
        """`a | b)`, with or without a parenthesis before it."""
        patterns = list[Word]()
        self.at += self.text.startswith("(", self.at)
        while True:
            self.skip_blanks()
            pattern = self._lexer.pattern(self.at, len(self.text), is_regex=False)
            patterns.append(pattern)
            self.at = pattern.end
            closer = self.text[self.skip_blanks() : self.at + 1]
            if closer not in ("|", ")"):
                raise self.unexpected()
            self.at += 1
            if closer == ")":
                return tuple(patterns)

    def _function(self, name: str) -> None:
        define = self.add(Define(name))
        self.skip_between()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableStatementError(self.at, "functions nested too deeply")
        self._command()
        self._depth -= 1
        self.out.append(Return())
        define.end = len(self.out)


def _header(text: str, start: int, end: int) -> tuple[Range, Range, Range]:
    """The three expressions of a counting `for`."""
    first = text.find(";", start, end)
    first = end if first == -1 else first
    second = text.find(";", first + 1, end)
    second = end if second == -1 else second
    return (start, first), (min(first + 1, end), second), (min(second + 1, end), end)
