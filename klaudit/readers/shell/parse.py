"""Shell grammar: from Code to a Program, statement by statement, as bash reads a script.

The grammar is small once words are read exactly, and words have to be read here: whoever edits a word needs the place of each of its
characters, through quotes and expansions.  A statement that cannot be read is reported, and reading goes on after its first line.
"""

from __future__ import annotations

import re
from typing import TypeVar

from klaudit.readers.shell.code import Code
from klaudit.readers.shell.lexer import Lexer
from klaudit.readers.shell.program import (
    Branch,
    Case,
    Define,
    Evaluate,
    ForEach,
    Instruction,
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
from klaudit.readers.shell.scan import closing
from klaudit.readers.shell.words import Word

_I = TypeVar("_I", bound=Instruction)
_C = TypeVar("_C", Branch, LoopTest)

_MAX_DEPTH = 40  # compound commands inside compound commands
_MAX_ERRORS = 50  # a file with more statements that cannot be read is no script

_DELIMITED = r"(?=[\s;&|()<>]|\\\n|\Z)"
_RESERVED = re.compile(rf"(?:if|while|until|for|select|case|function|coproc|time|!|\{{|\[\[){_DELIMITED}")
_STOP = re.compile(rf"(?:then|elif|else|fi|do|done|esac|\}}){_DELIMITED}|;;&|;;|;&|\)")
_FUNCTION = re.compile(r"([^\s\\'\"`$|&;<>(){}=#][^\s\\'\"`$|&;<>()=]*)[ \t]*\([ \t]*\)")
_NAME = re.compile(r"[^\s;&|()<>]+")
_IN = re.compile(rf"in{_DELIMITED}")
_EMPTY_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_TIME_OPTION = re.compile(r"[ \t]*-p(?=\s)")
_BLANKS = re.compile(r"(?:[ \t]|\\\r?\n|\r(?=\n))*")
_BETWEEN = re.compile(r"(?:[ \t\r]|\\\r?\n|#[^\n]*)*")


class _UnreadableStatementError(Exception):
    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


def parse(code: Code) -> Program:
    """The code's program, parsed once."""
    if code.program is None:
        code.program = _Parser(code).program()
    return code.program


class _Parser:
    """Recursive descent that emits instructions as it goes; what turns out to be wrapped by something is wrapped afterwards."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._text = code.text
        self._lexer = Lexer(code)
        self._out: list[Instruction] = []
        self._errors: list[tuple[int, str]] = []
        self._at = 0
        self._last_end = 0  # where the last command ended
        self._depth = 0

    def program(self) -> Program:
        while not self._skip_between() and len(self._errors) < _MAX_ERRORS:
            start, size = self._at, len(self._out)
            if self._errors and (stray := _STOP.match(self._text, start)):  # the end of a statement that was not read
                self._at = stray.end()
                continue
            try:
                self._statement()
            except _UnreadableStatementError as error:
                self._errors.append((error.position, str(error)))
                del self._out[size:]
                self._depth = 0
                self._at = self._next_line(start)
        self._out.append(Return())
        return Program(self._out, self._errors)

    # --- lists and pipelines -------------------------------------------------------------------------------------------------------

    def _list(self, *stops: str) -> str:
        """Statements up to one of these words, which is consumed."""
        while not self._skip_between():
            if stop := _STOP.match(self._text, self._at):
                if stop.group() not in stops:
                    raise self._unexpected()
                self._at = stop.end()
                return stop.group()
            self._statement()
        raise _UnreadableStatementError(self._at, "unexpected end of the script")

    def _statement(self) -> None:
        """`a && b || c`, up to and including a `;` or `&`."""
        first = len(self._out)
        self._and_or()
        self._skip_blanks()
        following = self._text[self._at : self._at + 2]
        if following[:1] == "&":
            self._wrap(first, len(self._out), Subshell())
            self._out.append(Succeed())
            self._at += 1
        elif following[:1] == ";" and following not in (";;", ";&"):
            self._at += 1
        elif following and following[0] not in "\n#\r" and not _STOP.match(self._text, self._at):
            raise self._unexpected()

    def _and_or(self) -> None:
        first, start, branches = len(self._out), self._at, list[Branch]()
        self._pipeline()
        while self._text.startswith(("&&", "||"), self._skip_blanks()):
            mark_tested(self._out, first, len(self._out))
            branches.append(self._add(Branch(self._text[self._at] == "|", (start, self._last_end))))
            self._at += 2
            self._skip_between()
            self._pipeline()
            branches[-1].target = len(self._out)
        for branch in branches:
            branch.join = len(self._out)

    def _pipeline(self) -> None:
        first, is_negated = len(self._out), False
        while (prefix := _RESERVED.match(self._text, self._at)) and prefix.group() in ("!", "time"):
            is_negated ^= prefix.group() == "!"
            self._at = prefix.end()
            if prefix.group() == "time" and (option := _TIME_OPTION.match(self._text, self._at)):
                self._at = option.end()
            self._skip_blanks()
        stages = [first]
        self._command()
        while self._text.startswith("|", self._skip_blanks()) and not self._text.startswith("||", self._at):
            self._at += 2 if self._text.startswith("|&", self._at) else 1
            self._skip_between()
            stages.append(len(self._out))
            self._command()
        if len(stages) > 1:
            ends = [*stages[1:], len(self._out)]
            mark_tested(self._out, first, stages[-1])
            for index in reversed(range(len(stages))):
                self._wrap(stages[index], ends[index], Stage(index == 0, index == len(stages) - 1))
        if is_negated:
            mark_tested(self._out, first, len(self._out))
            self._out.append(Negate())

    # --- commands --------------------------------------------------------------------------------------------------------------------

    def _command(self) -> None:
        text, start, first = self._text, self._at, len(self._out)
        reserved = _RESERVED.match(text, start)
        if reserved is None and not text.startswith("(", start):
            if function := _FUNCTION.match(text, start):
                self._at = function.end()
                self._function(function[1])
            else:
                self._simple()
            return
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _UnreadableStatementError(start, "commands nested too deeply")
        if reserved is None:
            self._parenthesised()
        else:
            self._at = reserved.end()
            self._compound(reserved.group(), first)
        self._depth -= 1
        redirects, self._at = self._lexer.redirects(self._at)
        if redirects:
            insert(self._out, first, Redirected(redirects))
            self._out.append(Restore())
        self._last_end = self._at

    def _compound(self, word: str, first: int) -> None:
        if word == "{":
            self._list("}")
        elif word == "[[":
            end = self._lexer.brackets_end(self._at)
            self._out.append(Evaluate("[[", (self._at, end)))
            self._at = self._after(end, "]]")
        elif word == "if":
            self._if()
        elif word in ("while", "until"):
            self._while(word == "until")
        elif word == "case":
            self._case()
        elif word == "function":
            self._skip_blanks()
            name = self._take_name()
            if parentheses := _EMPTY_PARENTHESES.match(self._text, self._at):
                self._at = parentheses.end()
            self._function(name)
        elif word in ("for", "select"):
            self._for()
            if word == "select":  # it asks the user
                del self._out[first:]
        else:  # coproc
            self._skip_blanks()
            self._command()

    def _simple(self) -> None:
        if _STOP.match(self._text, self._at):
            raise self._unexpected()
        command = self._lexer.simple_command(self._at)
        unterminated = self._lexer.take_unterminated()
        if unterminated is not None:
            raise _UnreadableStatementError(unterminated, "quote or expansion without an end")
        if command.end == self._at:
            raise self._unexpected()
        if any(not each.target.parts and each.operator not in ("<<", "<<<") for each in command.redirects):
            self._errors.append((self._at, "redirection without a target"))
        self._out.append(Run(command))
        self._at, self._last_end = command.end, command.words_end

    def _parenthesised(self) -> None:
        text, start = self._text, self._at
        if text.startswith("((", start):
            end = closing(text, start + 2, "a")
            if text.startswith("))", end):
                self._out.append(Evaluate("((", (start + 2, end)))
                self._at = end + 2
                return
        self._at += 1
        subshell = self._add(Subshell())
        self._list(")")
        self._out.append(Return())
        subshell.end = len(self._out)

    def _if(self) -> None:
        jumps, branches, word = list[Jump](), list[Branch](), "if"
        while word in ("if", "elif"):
            branch = self._condition("then", Branch(False, (0, 0)))
            branches.append(branch)
            word = self._list("elif", "else", "fi")
            if word != "fi":
                jumps.append(self._add(Jump()))
            branch.target = len(self._out)
        if word == "else":
            self._list("fi")
        for jump in jumps:
            jump.target = len(self._out)
        for branch in branches:
            branch.join = len(self._out)

    def _condition(self, stop: str, test: _C) -> _C:
        """Commands whose outcome `test` looks at."""
        self._skip_between()
        first, start = len(self._out), self._at
        self._list(stop)
        mark_tested(self._out, first, len(self._out))
        test.condition = (start, max(self._last_end, start))
        return self._add(test)

    def _while(self, until: bool) -> None:
        loop = self._add(Loop())
        loop.again = len(self._out)
        test = self._condition("do", LoopTest(until, (0, 0)))
        self._list("done")
        self._out.append(Jump(loop.again))
        loop.end = test.end = len(self._out)

    def _for(self) -> None:
        self._skip_blanks()
        if self._text.startswith("((", self._at):
            self._counting_for()
            return
        name, words = self._take_name(), None
        self._skip_between()
        if found := _IN.match(self._text, self._at):
            words, self._at = self._lexer.words(found.end())
        each = self._add(ForEach(name, words))
        again = len(self._out)
        following = self._add(Next(name))
        self._loop_body()
        self._out.append(Jump(again))
        each.end = following.end = len(self._out)

    def _counting_for(self) -> None:
        """`for ((first; condition; update))`."""
        end = closing(self._text, self._at + 2, "a")
        first, condition, update = _header(self._text, self._at + 2, end)
        self._at = self._after(end, "))")
        self._out.append(Evaluate("((", first, True))
        loop, test_at = self._add(Loop()), len(self._out)
        is_endless = not self._text[slice(*condition)].strip()
        self._out.append(Succeed() if is_endless else Evaluate("((", condition, True))
        test = self._add(LoopTest(False, condition))
        self._loop_body()
        loop.again = len(self._out)
        self._out.append(Evaluate("((", update, True))
        self._out.append(Jump(test_at))
        loop.end = test.end = len(self._out)

    def _loop_body(self) -> None:
        self._skip_blanks()
        if self._text.startswith(";", self._at):
            self._at += 1
        self._skip_between()
        opener = "{" if self._text.startswith("{", self._at) else "do"
        if not self._text.startswith(opener, self._at):
            raise self._unexpected()
        self._at += len(opener)
        self._list("}" if opener == "{" else "done")

    def _case(self) -> None:
        self._skip_blanks()
        subject = self._lexer.word(self._at)
        self._at = subject.end
        self._skip_between()
        if not (found := _IN.match(self._text, self._at)):
            raise self._unexpected()
        self._at = found.end()
        case, jumps, stop = self._add(Case(subject)), list[Jump](), ""
        while stop != "esac":
            if self._skip_between():
                raise self._unexpected()
            if self._text.startswith("esac", self._at):
                self._at += 4
                break
            case.arms.append((self._patterns(), len(self._out)))
            stop = self._list(";;", ";&", ";;&", "esac")
            if stop != ";&":
                jumps.append(self._add(Jump()))
        for jump in jumps:
            jump.target = len(self._out)
        case.join = len(self._out)

    def _patterns(self) -> tuple[Word, ...]:
        """`a | b)`, with or without a parenthesis before it."""
        patterns = list[Word]()
        self._at += self._text.startswith("(", self._at)
        while True:
            self._skip_blanks()
            pattern = self._lexer.pattern(self._at, len(self._text), is_regex=False)
            patterns.append(pattern)
            self._at = pattern.end
            closer = self._text[self._skip_blanks() : self._at + 1]
            if closer not in ("|", ")"):
                raise self._unexpected()
            self._at += 1
            if closer == ")":
                return tuple(patterns)

    def _function(self, name: str) -> None:
        define = self._add(Define(name))
        self._skip_between()
        self._command()
        self._out.append(Return())
        define.end = len(self._out)

    # --- reading on --------------------------------------------------------------------------------------------------------------------

    def _add(self, instruction: _I) -> _I:
        self._out.append(instruction)
        return instruction

    def _wrap(self, start: int, end: int, opener: Subshell | Stage) -> None:
        """Make the instructions `start`..`end` the inside of `opener`."""
        insert(self._out, end, Return())
        insert(self._out, start, opener)
        opener.end = end + 2

    def _skip_blanks(self) -> int:
        blanks = _BLANKS.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at
        return self._at

    def _skip_between(self) -> bool:
        """Pass blanks, comments, line ends, and the heredocs that follow these.  Whether the text is at its end."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            self._at = between.end() if between else self._at
            if not self._text.startswith("\n", self._at):
                return self._at >= len(self._text)
            self._at = self._next_line(self._at)

    def _next_line(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end == -1 else self._code.heredocs.get(end, end + 1)

    def _take_name(self) -> str:
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise self._unexpected()
        self._at = name.end()
        return name.group()

    def _after(self, end: int, closer: str) -> int:
        if not self._text.startswith(closer, end):
            raise _UnreadableStatementError(self._at, f"{closer} is missing")
        return end + len(closer)

    def _unexpected(self) -> _UnreadableStatementError:
        word = _NAME.match(self._text, self._at)
        shown = word.group()[:20] if word else self._text[self._at : self._at + 1].replace("\n", "end of line")
        return _UnreadableStatementError(self._at, f"unexpected {shown}" if shown else "unexpected end of the script")


def _header(text: str, start: int, end: int) -> tuple[Range, Range, Range]:
    """The three expressions of a counting `for`."""
    first = text.find(";", start, end)
    first = end if first == -1 else first
    second = text.find(";", first + 1, end)
    second = end if second == -1 else second
    return (start, first), (min(first + 1, end), second), (min(second + 1, end), end)
