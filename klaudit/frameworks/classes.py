"""What a class of the tree is and brings with it: its lineage up to a framework's own config class, across modules."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from klaudit.frameworks.programs import Programs
from klaudit.frameworks.recognise import ClassMatch, Index
from klaudit.model import Setting
from klaudit.readers.document import ConfigObject, PythonDocument
from klaudit.readers.python import read_classes_of, read_python
from klaudit.readers.source import Source, UnreadableError
from klaudit.tree import Tree

_MAX_LINEAGE = 12
_NAMES = ("Config", "Arguments", "Args", "Params", "Trainer", "Strategy")  # what config classes are called


class Lineage(Struct, frozen=True):
    """`inherited` holds the field defaults of the classes between, the framework's own class's first descendant first.

    `forced` is what their constructors set whatever is given.
    """

    matches: tuple[ClassMatch, ...]
    inherited: tuple[Setting, ...]
    symbol: str  # the framework's class
    forced: tuple[Setting, ...] = ()


class Classes:
    def __init__(self, tree: Tree, programs: Programs, index: Index) -> None:
        self._tree = tree
        self._programs = programs
        self._index = index
        self._documents: dict[str, PythonDocument | None] = {}
        self._homes: dict[str, PythonDocument | None] = {}
        self._asked: PythonDocument | None = None
        self._defined: dict[str, ConfigObject] = {}

    def may_be_config(self, symbol: str) -> bool:
        """Whether a call of this name, of a class that its module does not define, may make a config that anything is known of."""
        return symbol.endswith(_NAMES) or bool(self._index.classes(symbol)) or self._index.is_phantom(symbol)

    def lineage(self, symbol: str, document: PythonDocument) -> Lineage | None:
        """The framework classes that `symbol`, as named in `document`, is or derives from."""
        return self._follow(symbol, document, 0, set())

    def document(self, path: str) -> PythonDocument | None:
        """A module of the tree, read once; None where it cannot be read."""
        if path not in self._documents:
            self._documents[path] = self._read(path, read_python)
        return self._documents[path]

    def _home(self, path: str) -> PythonDocument | None:
        """The classes and imports of a module of the tree, read once; None where it cannot be read."""
        if path not in self._homes:
            self._homes[path] = self._documents.get(path) or self._read(path, read_classes_of)
        return self._homes[path]

    def _read(self, path: str, read: Callable[[Source], PythonDocument]) -> PythonDocument | None:
        try:
            source = self._tree.readable(path)
            return read(source) if source is not None else None
        except UnreadableError:
            return None  # reported when the scan comes to that file itself

    def _follow(
        self, symbol: str, document: PythonDocument, depth: int, barren: set[tuple[str, str]]
    ) -> Lineage | None:
        """`barren` are the classes already followed in vain: with many bases each, they would be met exponentially often."""
        if matches := self._index.classes(symbol):
            return Lineage(tuple(matches), (), symbol)
        here = (symbol, document.source.path)
        if depth > _MAX_LINEAGE or here in barren:
            return None
        if not symbol.endswith(_NAMES) and self._class_in(document, symbol) is None:
            return None
        barren.add(here)
        found = self._definition(symbol, document)
        if found is None:
            return None
        defined, home = found
        for base in defined.bases:
            if base != symbol or home is not document:
                lineage = self._follow(base, home, depth + 1, barren)
                if lineage is not None:
                    return Lineage(
                        lineage.matches,
                        (*lineage.inherited, *defined.settings),
                        lineage.symbol,
                        (*lineage.forced, *defined.forced),
                    )
        return None

    def _definition(
        self, symbol: str, document: PythonDocument, hops: int = 0
    ) -> tuple[ConfigObject, PythonDocument] | None:
        if local := self._class_in(document, symbol):
            return local, document
        module, _, name = symbol.rpartition(".")
        path = self._programs.module(module, document.source.path) if module else None
        if path is None or path == document.source.path:
            return None
        home = self._home(path)
        if home is None:
            return None
        if defined := self._class_in(home, name):
            return defined, home
        again = dict(home.imports).get(name)  # re-exported
        return self._definition(again, home, hops + 1) if again and hops < _MAX_LINEAGE else None

    def _class_in(self, document: PythonDocument, name: str) -> ConfigObject | None:
        """A class that the document itself defines; remembered for the document asked last, whose every call asks."""
        if self._asked is not document:
            self._asked = document
            self._defined = {each.symbol: each for each in reversed(document.objects) if each.kind == "class"}
        return self._defined.get(name)
