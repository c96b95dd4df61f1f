"""Which Python program a command runs, with which arguments, behind however many launchers and wrappers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from klaudit.readers.document import Command, Word
from klaudit.readers.launchers import LAUNCHERS, LONGEST_NAME, PYTHON_LAUNCHERS, Grammar

Kind: TypeAlias = Literal["module", "script", "program"]

_MAX_LAUNCHERS = 20  # one inside the other

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:w|t|\.exe|\.sh)?|ipython3?")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "fish", "ksh"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_JOINING = ("&&", ";", "||")
_OPERATOR = re.compile(r"&&|\|\|?|;|&|(?!<.*>$)\d*(?:>>?|<)\S*|&>>?\S*|\d*>&\d*")  # a quoted "</tag>" is none
_CODE = re.compile(
    r"[ \t\n;&|<>`]"
)  # in a program's name, or in words that a shell joins: code, which is read elsewhere
_PYTHON_OPTIONS_WITH_VALUE = "XW"
_ENV_OPTIONS_WITH_VALUE = frozenset({"-u", "--unset", "-C", "--chdir", "-S", "--split-string"})


class Invocation(Struct, frozen=True):
    """A program with its own arguments.

    `target` is a module's dotted name, a script's path, or a program's name without its folder.  `directory` is where it runs, relative
    to where the outer script was started, None where that is not known.  `environment` is what the command says of it.
    """

    kind: Kind
    target: str
    target_word: Word
    arguments: tuple[Word, ...]
    directory: str | None
    environment: tuple[tuple[str, str | None], ...]
    command: Command


def invocation(command: Command) -> Invocation | None:
    """What the command runs in the end.  None for shells, for Python code given inline, and where the program is not known."""
    return _Reading(command).find(list(command.words), 0)


class _Reading:
    def __init__(self, command: Command) -> None:
        self._command = command
        self._directory = command.directory
        self._environment = list(command.environment)

    def find(self, words: Sequence[Word], depth: int) -> Invocation | None:
        """What a command made of these words runs."""
        words = self._without_assignments(words)
        if not words or depth > _MAX_LAUNCHERS:
            return None
        name = self._program(words)
        if name is None:
            return None
        if _PYTHON.fullmatch(name):
            return self._python(words[1:], depth)
        if name in _SHELLS:
            return None
        if name == "env":
            return self.find(self._after_env(words[1:]), depth + 1)
        for length in range(min(LONGEST_NAME, len(words)), 0, -1):
            grammar = LAUNCHERS.get((name, *[word.text or "" for word in words[1:length]]))
            if grammar is not None:
                return self._launched(words[length:], grammar, depth)
        if name.endswith(".py"):
            return self._script(words, depth)
        behind = self._behind_separator(words, depth)
        return behind or self._made("program", name, words)

    def _program(self, words: Sequence[Word]) -> str | None:
        """The program's name without its folder; "python" for an unknown one that is used as such."""
        text = words[0].text
        if text:
            return None if _CODE.search(text) else posixpath.basename(text)
        shown = words[0].shown
        if shown.rpartition("/")[2] and _PYTHON.fullmatch(shown.rpartition("/")[2]):
            return "python"
        following = words[1].text if len(words) > 1 else None
        return "python" if following in ("-m", "-u") or (following or "").endswith(".py") else None

    def _without_assignments(self, words: Sequence[Word]) -> Sequence[Word]:
        index = 0
        while index < len(words) and words[index].pieces and _ASSIGNMENT.match(words[index].pieces[0].text or ""):
            name, _, value = words[index].shown.partition("=")
            self._environment.append((name, None if words[index].text is None else value))
            index += 1
        return words[index:]

    def _after_env(self, words: Sequence[Word]) -> Sequence[Word]:
        index = 0
        while index < len(words) and (words[index].text or "").startswith("-"):
            index += 2 if words[index].text in _ENV_OPTIONS_WITH_VALUE else 1
        return words[index:]

    def _python(self, words: Sequence[Word], depth: int) -> Invocation | None:
        """What follows `python`: its options, then a script or `-m` and a module."""
        index = 0
        while index < len(words):
            text = words[index].shown
            if not text.startswith("-"):
                return self._script(words[index:], depth)
            if text in ("-", "--"):
                return self._script(words[index + 1 :], depth) if text == "--" else None
            if text.startswith("--"):
                index += 1
                continue
            for position, letter in enumerate(text[1:], 2):
                if letter == "c":
                    return None
                if letter == "m":
                    return self._module(words, index, text[position:], depth)
                if letter in _PYTHON_OPTIONS_WITH_VALUE:
                    index += position == len(text)  # the value is the next word
                    break
            index += 1
        return None

    def _module(self, words: Sequence[Word], index: int, attached: str, depth: int) -> Invocation | None:
        if attached:  # -mname
            name, rest = attached, words[index:]
        elif index + 1 < len(words):
            name, rest = words[index + 1].shown, words[index + 1 :]
        else:
            return None
        grammar = PYTHON_LAUNCHERS.get(name)
        if grammar is not None:
            return self._launched(rest[1:], grammar, depth)
        return self._made("module", name, rest)

    def _script(self, words: Sequence[Word], depth: int) -> Invocation | None:
        if not words:
            return None
        behind = self._behind_separator(words, depth)
        return behind or self._made("script", words[0].shown, words)

    def _launched(self, words: Sequence[Word], grammar: Grammar, depth: int) -> Invocation | None:
        """What a launcher runs, after its options and operands."""
        index, is_module, operands = 0, False, grammar.operands
        if grammar.elsewhere:
            self._directory = None
        while index < len(words):
            text = words[index].shown
            if text == "--":
                index += 1
                break
            if not text.startswith("-") or len(text) == 1:
                if not operands:
                    break
                operands -= 1
                index += 1
                continue
            if grammar.inner != "command" and text in ("-m", "--module"):
                is_module = True
                index += 1
                continue
            option, equals, value = text.partition("=")
            if not equals and self._value_follows(words, index, option, grammar):
                index += 1
                value = words[index].shown
            if option in grammar.directory and self._directory is not None:
                self._directory = posixpath.normpath(posixpath.join(self._directory, value))
            index += 1
        rest = words[index:]
        if not rest or (grammar.is_joined and any(_CODE.search(word.text or "") for word in rest)):
            return None
        if is_module:
            return self._made("module", rest[0].shown, rest)
        if grammar.inner == "target" or (grammar.inner == "either" and (rest[0].text or "").endswith(".py")):
            return self._script(rest, depth)
        return self._after_operators(rest, depth)

    def _value_follows(self, words: Sequence[Word], index: int, option: str, grammar: Grammar) -> bool:
        """Whether the option's value is the next word."""
        if index + 1 >= len(words):
            return False
        if len(option) > 2 and option[1] != "-" and option not in grammar.named:
            if grammar.takes_value(option[:2]):
                return False  # -n4
            return grammar.takes_value("-" + option[-1]) and not grammar.others_take_values  # -itv folder
        if not grammar.takes_value(option):
            return False
        if not grammar.others_take_values:
            return True
        following = words[index + 1].text or ""  # a guess: what looks like an option or the target is none
        return not following.startswith("--") and not (option.startswith("--") and following.endswith(".py"))

    def _behind_separator(self, words: Sequence[Word], depth: int) -> Invocation | None:
        """`submit.py --cluster x -- python train.py ..`: the Python program behind `--`, if there is one."""
        texts = [word.text for word in words]
        if "--" not in texts:
            return None
        reading = _Reading(self._command)
        found = reading._after_operators(words[texts.index("--") + 1 :], depth)
        return found if found is not None and found.kind != "program" else None

    def _after_operators(self, words: Sequence[Word], depth: int) -> Invocation | None:
        """The first Python program among commands joined by `&&` or `;` words; the first program if there is none."""
        first: Invocation | None = None
        start = 0
        opening = next((word.text for word in words if word.text in (*_JOINING, "--")), None)
        if opening == "--":  # what follows it, operators and all, is what this one runs
            return self.find(words, depth + 1)
        for index in range(len(words) + 1):
            if index < len(words) and words[index].text not in _JOINING:
                continue
            found = self.find(words[start:index], depth + 1) if index > start else None
            if found is not None and found.kind != "program":
                return found
            first = first or found
            start = index + 1
        return first

    def _made(self, kind: Kind, target: str, words: Sequence[Word]) -> Invocation:
        arguments = words[1:]
        end = next((i for i, word in enumerate(arguments) if _OPERATOR.fullmatch(word.text or "")), len(arguments))
        return Invocation(
            kind,
            target,
            words[0],
            tuple(arguments[:end]),
            self._directory,
            tuple(self._environment),
            self._command,
        )
