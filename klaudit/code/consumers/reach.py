"""From a function back to the program that a launch starts: who imports and mentions it, and under which tests.

A name is followed from the file that defines it to the definitions that mention it, in the same file or through imports, until the
entry file is met.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from klaudit.code.consumers.guards import Ask, allows
from klaudit.code.consumers.imports import Imports, Place, Use, module_word

MAX_NODES = 60  # names followed from one formula


class Reach:
    """`files` are the paths of the Python files that may lie on the way."""

    def __init__(self, files: Iterable[str], imports: Imports) -> None:
        self._files = tuple(files)
        self._imports = imports
        self._uses: dict[Place, tuple[Use, ...]] = {}

    def reached(
        self, start: Place, entries: Iterable[str], ask: Ask, methods: frozenset[str] = frozenset()
    ) -> bool | None:
        """Whether one of the entry files leads to a name under the settings of a launch, as far as its tests can be told.

        A class that has one of the methods anew leads nowhere.  None where nobody mentions the name, so that a registry may lead to it.
        """
        wanted = frozenset(entries)
        if start.path in wanted:
            return True
        waiting = [(start, methods)]
        seen = set(waiting)
        while waiting:
            place, needed = waiting.pop()
            for use in self.uses(place):
                if use.overrides is not None and not use.overrides.isdisjoint(needed):
                    continue
                same = use.is_import or use.overrides is not None  # the class itself, or one derived from it
                state = (use.place, needed if same else frozenset(filter(None, (use.method,))))
                if state in seen or allows(use.guards, ask) is False:
                    continue
                if (use.place.path in wanted and not use.is_import) or len(seen) >= MAX_NODES:
                    return True
                seen.add(state)
                waiting.append(state)
        return False if self.uses(start) else None

    def uses(self, place: Place) -> tuple[Use, ...]:
        """The names that lead to one."""
        if place not in self._uses:
            # code of the top level has no name: whoever imports the file runs it
            files = dict.fromkeys((*self._importers[module_word(place.path)], place.path)) if place.name else ()
            self._uses[place] = tuple(use for path in files for use in self._imports.uses(path, place))
        return self._uses[place]

    @cached_property
    def _importers(self) -> defaultdict[bytes, list[str]]:
        """The files by the words of their imports."""
        importers: defaultdict[bytes, list[str]] = defaultdict(list)
        for path in self._files:
            for word in self._imports.words(path):
                importers[word].append(path)
        return importers
