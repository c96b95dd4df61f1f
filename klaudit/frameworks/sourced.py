"""Scripts that a script runs as its own text (`source lib.sh`), so that what stands in them stands in it, and those that it calls."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from klaudit.tree import Tree

_MOST = 50  # scripts on the way: nobody writes longer chains
# Each begins with a fixed text, which makes it a fast search; whether a command begins there is looked at afterwards.
_NAME = rb"(?=[ \t]+[\"']?([^\s;&|)\"']{1,400}))"
_SOURCE = re.compile(rb"source" + _NAME)
_DOT = re.compile(rb"\.(?<![^\s;&|{(neo]\.)" + _NAME)  # not the end of a sentence
_BEFORE_A_COMMAND = b";&|{("
_WORDS_BEFORE_A_COMMAND = (b"then", b"do", b"else")
_IN_WORDS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_SUFFIX = re.compile(rb"\.(?:sh|bash|slurm|sbatch)(?![\w.-])")
_BEFORE_A_NAME = b" \t\r\n;&|()<>=\"'`/"
_LONGEST_NAME = 255
_MOST_MENTIONS = 10_000  # of scripts in one text


class Sourced:
    """`files` are those of the tree; `may_matter` says of a text whether it holds a word that a rule looks for."""

    def __init__(self, tree: Tree, files: Iterable[str], may_matter: Callable[[bytes], bool]) -> None:
        self._tree = tree
        self._may_matter = may_matter
        self._by_name: dict[str, list[str]] = {}
        for path in files:
            if not path.endswith((".py", ".json", ".yaml", ".yml", ".toml", ".ipynb", ".md")):
                self._by_name.setdefault(posixpath.basename(path), []).append(path)
        self._known: dict[str, bool] = {}

    def may_matter(self, data: bytes, near: str) -> bool:
        """Whether a script that the text sources, or one that this sources in turn, may matter.  Read as bytes, before any parsing."""
        if b"source" not in data and b". " not in data and b".\t" not in data:
            return False
        seen: set[str] = set()
        pending = list(self._named_in(data, near))
        while pending and len(seen) < _MOST:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            sourced = self._tree.data(path)
            if sourced is not None:
                if self._holds_a_word(path, sourced):
                    return True
                pending += self._named_in(sourced, path)
        return False

    def calls(self, data: bytes, near: str) -> bool:
        """Whether the text names a script that may matter, which it could call, or one that calls such a script in turn."""
        seen = {near}
        pending = [data]
        while pending and len(seen) < _MOST:
            text = pending.pop()
            for path in [
                path for name in _named_scripts(text) for path in self._by_name.get(name, ()) if path not in seen
            ]:
                seen.add(path)
                called = self._tree.data(path)
                if called is not None:
                    if self._holds_a_word(path, called) or self.may_matter(called, path):
                        return True
                    pending.append(called)
        return False

    def _holds_a_word(self, path: str, data: bytes) -> bool:
        if path not in self._known:
            self._known[path] = self._may_matter(data)
        return self._known[path]

    def _named_in(self, data: bytes, near: str) -> Iterator[str]:
        for name in sorted({os.fsdecode(posixpath.basename(sourced)) for sourced in _sourced_scripts(data)}):
            beside = posixpath.join(posixpath.dirname(near), name)
            yield from self._by_name.get(name) or ([beside] if name and self._tree.is_file(beside) else [])


def _sourced_scripts(text: bytes) -> Iterator[bytes]:
    """What follows `source` or `.` where a command begins."""
    end = 0
    for match in sorted((*_SOURCE.finditer(text), *_DOT.finditer(text)), key=re.Match.start):
        begin = _begin_of_command(text, match.start())
        if begin is not None and begin >= end:
            end = match.end(1)
            yield match[1]


def _begin_of_command(text: bytes, at: int) -> int | None:
    """Where that begins after which the command at `at` stands; None where none can begin."""
    while at > 0 and text[at - 1] in b" \t":
        at -= 1
    if at == 0 or text[at - 1] == 10:
        return at
    if text[at - 1] in _BEFORE_A_COMMAND:
        return at - 1
    for word in _WORDS_BEFORE_A_COMMAND:
        if text.endswith(word, 0, at):
            begin = at - len(word)
            return begin if begin == 0 or text[begin - 1] not in _IN_WORDS else None
    return None


def _named_scripts(text: bytes) -> list[str]:
    """Names, without folders, of what a text mentions that looks like a script.  Found from their ends, in linear time."""
    names: set[bytes] = set()
    for suffix in islice(_SUFFIX.finditer(text), _MOST_MENTIONS):
        before = text[max(suffix.start() - _LONGEST_NAME, 0) : suffix.start()]
        start = max(before.rfind(bytes((byte,))) for byte in _BEFORE_A_NAME) + 1
        names.add(before[start:] + suffix.group())
    return sorted(map(os.fsdecode, names))
