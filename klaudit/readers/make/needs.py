"""What a target needs is made with the variables of that target: which recipes those may reach."""

from __future__ import annotations

from klaudit.readers.make.variables import Room


class Needs:
    """`room` bounds the looking."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._of: dict[bytes, set[bytes] | None] = {}  # None where nobody knows them all
        self._reached: dict[frozenset[bytes], frozenset[bytes] | None] = {}

    def add(self, targets: tuple[bytes, ...], needed: frozenset[bytes] | None) -> None:
        """A rule; `needed` is None where they cannot be told.  Raises TooMuchError."""
        for target in targets:
            self._room.use(len(needed or ()))
            known = self._of.setdefault(target, set())
            if known is None or needed is None:
                self._of[target] = None
            else:
                known |= needed

    def reached(self, targets: frozenset[bytes]) -> frozenset[bytes] | None:
        """All that is made on the way to one of the targets; None where it may be anything.  Raises TooMuchError."""
        if targets not in self._reached:
            self._reached[targets] = self._reach(targets)
        return self._reached[targets]

    def _reach(self, targets: frozenset[bytes]) -> frozenset[bytes] | None:
        seen = set(targets)
        waiting = list(targets)
        while waiting:
            needed = self._of.get(waiting.pop(), set())
            if needed is None:
                return None
            self._room.use(len(needed))
            waiting += needed - seen
            seen |= needed
        return frozenset(seen)
