"""The byte funnel: drops files that hold none of the words that any rule looks for, before anything is parsed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush

# How many of a hundred bytes of source text are this letter.
_SHARES = {
    "e": 7.3, "t": 5.6, "o": 4.6, "s": 4.6, "r": 4.5, "a": 4.4, "i": 4.3, "n": 4.1, "l": 3.2, "_": 3.2, "c": 2.5, "d": 2.4, "p": 2.4,
    "m": 1.9, "f": 1.8, "u": 1.8, "g": 1.5, ".": 1.4, "h": 1.3, "b": 0.7, "y": 0.7, "k": 0.6, "w": 0.6, "v": 0.6, "x": 0.3, "z": 0.3,
}  # fmt: skip
_SHARE = [_SHARES.get(chr(byte), 0.2) / 100 for byte in range(256)]
# What an expression costs that begins with a stem, in nanoseconds: to walk over a byte, to look further wherever its first letter stands,
# to begin a match wherever the whole stem stands, to try one keyword there.
_WALK, _FIRST_LETTER, _STEM, _KEYWORD = 0.3, 7.0, 70.0, 8.0
_LENGTHS = (2, 3)  # of stems; longer ones are hardly rarer, and there are more to choose from


class Prefilter:
    """A test for "one of `keywords` occurs, whatever its case".

    Most files hold none, so a miss must be cheap.  One expression with many alternatives tries them all at every byte; one that begins
    with a fixed text is as fast as a search for that text.  So the keywords are shared out over a few stems that stand inside them, and
    there is one expression a stem: the stem itself, and then what must stand around it.
    """

    def __init__(self, keywords: Iterable[bytes]) -> None:
        """`keywords` in ASCII; no keyword at all lets everything pass, the empty keyword too."""
        needed = _shortest({keyword.lower() for keyword in keywords})
        stems = {} if b"" in needed else _stems(needed)
        self._searches = tuple(re.compile(_around(stem, held)).search for stem, held in stems.items())

    def may_matter(self, data: bytes) -> bool:
        """Whether any keyword occurs in the data."""
        lowered = data.lower()
        for search in self._searches:
            if search(lowered) is not None:
                return True
        return not self._searches


@lru_cache(maxsize=8)
def prefilter_of(keywords: frozenset[bytes]) -> Prefilter:
    """The same for the same keywords: to choose its stems costs more than to scan a small tree."""
    return Prefilter(keywords)


def _shortest(keywords: Iterable[bytes]) -> set[bytes]:
    """Those that hold no other one."""
    found: set[bytes] = set()
    for keyword in sorted(keywords, key=len):
        if not any(shorter in keyword for shorter in found):
            found.add(keyword)
    return found


def _around(stem: bytes, keywords: Iterable[bytes]) -> bytes:
    """An expression that begins with the stem and matches where it stands in a keyword."""
    rests: list[bytes] = []
    for keyword in sorted(keywords):
        before, _, after = keyword.partition(stem)
        rests.append((b"(?<=" + re.escape(before + stem) + b")" if before else b"") + re.escape(after))
    return re.escape(stem) + b"(?:" + b"|".join(rests) + b")"


def _stems(keywords: Collection[bytes]) -> Mapping[bytes, set[bytes]]:
    """Few and cheap substrings, each with the keywords that it stands for: greedily the one that costs least for each keyword."""
    holders: dict[bytes, set[bytes]] = {}
    for keyword in keywords:
        for length in _LENGTHS if len(keyword) >= min(_LENGTHS) else (len(keyword),):
            for start in range(len(keyword) - length + 1):
                holders.setdefault(keyword[start : start + length], set()).add(keyword)
    offers = [(_cost(piece, len(held)), piece) for piece, held in holders.items()]
    heapify(offers)
    left = set(keywords)
    stems: dict[bytes, set[bytes]] = {}
    while left:
        offered, piece = heappop(offers)
        if held := holders[piece] & left:
            cost = _cost(piece, len(held))
            if cost > offered:  # it stands for fewer than it did, so it is dearer and waits for its turn
                heappush(offers, (cost, piece))
            else:
                stems[piece] = held
                left -= held
    return stems


def _cost(stem: bytes, keywords: int) -> float:
    """For each of that many keywords."""
    occurs = 1.0
    for byte in stem:
        occurs *= _SHARE[byte]
    return (_WALK + _FIRST_LETTER * _SHARE[stem[0]] + _STEM * occurs) / keywords + _KEYWORD * occurs
