"""The byte funnel: drops files that hold none of the words that any rule looks for, before anything is parsed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

# Surprisal in nats of a letter of source text (English letter frequencies are near enough), and how much makes a stem rare.
_FREQUENCIES = {
    "e": 12.7, "t": 9.1, "a": 8.2, "o": 7.5, "i": 7.0, "n": 6.7, "s": 6.3, "h": 6.1, "r": 6.0, "d": 4.3, "l": 4.0, "c": 2.8, "u": 2.8,
    "m": 2.4, "w": 2.4, "f": 2.2, "g": 2.0, "y": 2.0, "p": 1.9, "b": 1.5, "v": 1.0, "k": 0.8, "j": 0.2, "x": 0.2, "q": 0.1, "z": 0.1,
}  # fmt: skip
_NATS = {ord(letter): -math.log(percent / 100) for letter, percent in _FREQUENCIES.items()}
_NATS_OF_OTHERS = 3.0  # punctuation and digits are common in code
_RARE = 8.0
_LENGTHS = (2, 3, 4, 5)


class Prefilter:
    """A test for "one of `keywords` occurs, whatever its case".

    Most files hold none, so a miss must be cheap: a few short stems, of which every keyword holds one, are looked for first.
    """

    def __init__(self, keywords: Iterable[bytes]) -> None:
        """`keywords` in ASCII; no keyword at all lets everything pass, the empty keyword too."""
        lowered = {keyword.lower() for keyword in keywords}
        self._keywords = tuple(sorted(k for k in lowered if not any(other in k for other in lowered - {k})))
        self._stems = _stems(self._keywords)
        self._by_stem: dict[bytes, list[bytes]] = {}
        for keyword in self._keywords:
            self._by_stem.setdefault(next(stem for stem in self._stems if stem in keyword), []).append(keyword)

    def may_matter(self, data: bytes) -> bool:
        """Whether any keyword occurs in the data."""
        lowered = data.lower()
        for stem, keywords in self._by_stem.items():
            if stem in lowered and any(keyword in lowered for keyword in keywords):
                return True
        return not self._keywords


@lru_cache(maxsize=8)
def prefilter_of(keywords: frozenset[bytes]) -> Prefilter:
    """The same for the same keywords: to choose its stems costs more than to scan a small tree."""
    return Prefilter(keywords)


def _stems(keywords: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Few substrings such that every keyword holds one: greedily those that cover most, the rarer of two that cover as many."""
    holders: dict[bytes, set[bytes]] = {}
    for keyword in keywords:
        pieces = {keyword[i : i + n] for n in _LENGTHS for i in range(len(keyword) - n + 1)}
        for piece in {p for p in pieces if _surprisal(p) >= _RARE} or {keyword}:
            holders.setdefault(piece, set()).add(keyword)
    by_cover: dict[int, list[tuple[float, bytes]]] = {}
    for piece, held in holders.items():
        by_cover.setdefault(len(held), []).append((_surprisal(piece), piece))
    stems: list[bytes] = []
    left = set(keywords)
    for cover in range(max(by_cover, default=0), 0, -1):  # what a piece covers only shrinks: it moves down until it is taken
        for surprisal, piece in sorted(by_cover.get(cover, ()), reverse=True):
            covers = len(holders[piece] & left)
            if covers == cover:
                stems.append(piece)
                left -= holders[piece]
            elif covers:
                by_cover.setdefault(covers, []).append((surprisal, piece))
    return tuple(stems)


def _surprisal(text: bytes) -> float:
    return sum(_NATS.get(byte, _NATS_OF_OTHERS) for byte in text)
