"""Whether a text may hold a launch, by its bytes alone: what is looked at before anything is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import islice

from klaudit.discover.prefilter import Prefilter, prefilter_of
from klaudit.discover.suffixes import CONFIG, MARKDOWN, NOTEBOOK, PYTHON, is_makefile, suffix_of
from klaudit.frameworks.endings import Endings
from klaudit.frameworks.programs import Programs
from klaudit.frameworks.recognise import Index
from klaudit.frameworks.sourced import Sourced
from klaudit.patterns import rare
from klaudit.tree import Tree

# A called script runs otherwise than by itself only where it is given variables or arguments.
_GIVES_SOMETHING = rare(
    rb"\.sh[ \t]+[^\s;&|>]|^[ \t]*(?:export[ \t]+)?\w+=|^[ \t]*(?:envs?|environment|variables):", re.MULTILINE
)
_SCRIPT = re.compile(rb"\.sh\b")
_BEFORE_A_COMMAND = b"\n;&|"
_LONGEST_COMMAND = 400  # as far as a script's name, in bytes
_MOST_SCRIPTS = 10_000  # in one text


class Screening:
    """`files` are those of the tree, `index` has the words of the rules."""

    def __init__(self, tree: Tree, files: Iterable[str], index: Index) -> None:
        self._tree = tree
        self._index = index
        files = list(files)
        self.programs = Programs(tree, files)
        self._sourced = Sourced(tree, files, self.holds_a_word)
        self.endings = Endings(files)
        self._readers: dict[str, bool] = {}  # programs, and whether they name a class that reads settings

    def may_set(self, path: str, data: bytes) -> bool:
        """Whether a file may hold settings of a launch."""
        if path.endswith(".py"):
            return self.words_of_code.may_matter(data)
        if self.holds_a_word(data) or (path.endswith((".yaml", ".yml")) and calls_scripts(data)):
            return True
        if path.endswith((".json", ".toml")):
            return False
        return self.may_start(path, data) or self.calls(path, data)

    def holds_a_word(self, data: bytes) -> bool:
        """Whether a text holds a word of any rule."""
        return self.words.may_matter(data)

    def may_start(self, path: str, data: bytes) -> bool:
        """Whether a text that holds no word of any rule names a program or script of the tree that does.

        `python train.py --beta 0.1`, `source lib.sh`.
        """
        if self._sourced.may_matter(data, path):
            return True
        return any(self.reads_settings(program) for program in self.programs.named_in(data, path))

    def calls(self, path: str, data: bytes) -> bool:
        """Whether a shell script names another one of the tree that launches something."""
        is_shell = suffix_of(path) not in PYTHON | NOTEBOOK | CONFIG | MARKDOWN and not is_makefile(path)
        return is_shell and self._sourced.calls(data, path)

    def reads_settings(self, program: str) -> bool:
        """Whether a program of the tree names a class that reads settings."""
        if program not in self._readers:
            self._readers[program] = self._index.mentions_a_class(self._tree, program)
        return self._readers[program]

    def prepare(self) -> None:
        """Makes now what is otherwise made when it is first needed."""
        _ = self.words, self.words_of_code

    @cached_property
    def words(self) -> Prefilter:
        """Of which every file that matters holds one, or names one that does."""
        return prefilter_of(self._index.keywords())

    @cached_property
    def words_of_code(self) -> Prefilter:
        """The same for Python."""
        return prefilter_of(self._index.code_keywords())


def calls_scripts(data: bytes) -> bool:
    """Whether a text calls scripts otherwise than they would run by themselves."""
    if b".sh" not in data:
        return False
    return _GIVES_SOMETHING.search(data) is not None or any(
        b"=" in _before(data, script.start()) for script in islice(_SCRIPT.finditer(data), _MOST_SCRIPTS)
    )


def _before(data: bytes, end: int) -> bytes:
    """What stands before a place in its command."""
    text = data[max(end - _LONGEST_COMMAND, 0) : end]
    return text[max(text.rfind(bytes((byte,))) for byte in _BEFORE_A_COMMAND) + 1 :]
