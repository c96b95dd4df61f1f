"""A file cut down to one definition and what it deals with, for proofs that would otherwise analyse everything again for each finding."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from klaudit.readers.python.syntax import parse
from klaudit.readers.source import Source

_WORD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_INK = re.compile(rb"[^\s]")
_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Excerpts:
    """Offsets of an excerpt are those of the file: what is left out is blank, line ends stay."""

    def __init__(self, source: Source) -> None:
        """Raises UnreadableError where the file is not Python."""
        self._source = source
        self._made: dict[frozenset[int], Source] = {}
        parsed = parse(source)
        self._cuttable = source.parent is None and parsed.data == source.data and source.path.endswith(".py")
        self._extents: list[tuple[int, int]] = []
        self._names: list[bytes] = []
        for node in parsed.tree.body if self._cuttable else ():
            if isinstance(node, _Definition):
                first = node.decorator_list[0] if node.decorator_list else None
                start = parsed.start(node) if first is None else parsed.data.rfind(b"@", 0, parsed.start(first))
                self._extents.append((start, parsed.end(node)))
                self._names.append(node.name.encode("utf-8", "surrogatepass"))

    def around(self, at: int) -> Source:
        """The file with the definition at an offset, those that use it, and all that these use; the whole where nothing can go."""
        own = next((which for which, (start, end) in enumerate(self._extents) if start <= at < end), None)
        if own is None:
            return self._source
        kept = frozenset(self._used_by(self._using(own)))
        if len(kept) == len(self._extents):
            return self._source
        if kept not in self._made:
            self._made[kept] = Source(self._source.path, self._without(kept))
        return self._made[kept]

    @cached_property
    def _words(self) -> list[frozenset[bytes]]:
        data = self._source.data
        return [frozenset(_WORD.findall(data, start, end)) for start, end in self._extents]

    @cached_property
    def _by_name(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for which, name in enumerate(self._names):
            found.setdefault(name, []).append(which)
        return found

    @cached_property
    def _users(self) -> dict[bytes, list[int]]:
        """Which definitions speak of one, by its name."""
        found: dict[bytes, list[int]] = {}
        for which, words in enumerate(self._words):
            for name in words & self._by_name.keys():
                found.setdefault(name, []).append(which)
        return found

    @cached_property
    def _outside(self) -> frozenset[int]:
        """Those that the statements between the definitions speak of."""
        data, at, words = self._source.data, 0, set[bytes]()
        for start, end in [*self._extents, (len(data), len(data))]:
            words.update(_WORD.findall(data, at, start))
            at = end
        return frozenset(which for name in words & self._by_name.keys() for which in self._by_name[name])

    def _using(self, own: int) -> set[int]:
        found, waiting = {own}, [own]
        while waiting:
            new = set(self._users.get(self._names[waiting.pop()], ())) - found
            found |= new
            waiting += new
        return found | self._outside

    def _used_by(self, users: set[int]) -> set[int]:
        found, waiting = set(users), list(users)
        while waiting:
            words = self._words[waiting.pop()] & self._by_name.keys()
            new = {which for name in words for which in self._by_name[name]} - found
            found |= new
            waiting += new
        return found

    def _without(self, kept: frozenset[int]) -> bytes:
        data, pieces, at = self._source.data, list[bytes](), 0
        for which, (start, end) in enumerate(self._extents):
            if which not in kept:
                pieces += [data[at:start], self._blanks[which]]
                at = end
        return b"".join([*pieces, data[at:]])

    @cached_property
    def _blanks(self) -> list[bytes]:
        return [_INK.sub(b" ", self._source.data[start:end]) for start, end in self._extents]
