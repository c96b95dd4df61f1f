"""Version ranges in plain PEP 440 order.

`packaging` specifiers leave pre-releases of a bound out of `<bound` and post-releases out of `>bound`; a fact such as "changed in
0.8.0" means the order itself, so that 0.8.0.dev0 is before the change.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from packaging.version import InvalidVersion, Version

_Comparison: TypeAlias = Callable[[Version, Version], bool]
_Bound: TypeAlias = tuple[_Comparison, Version]

_OPERATORS: tuple[tuple[str, _Comparison], ...] = (
    (">=", operator.ge),
    ("<=", operator.le),
    ("==", operator.eq),
    ("!=", operator.ne),
    (">", operator.gt),
    ("<", operator.lt),
)


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version:
    """Raises ValueError for what is not a version."""
    try:
        return Version(text)
    except InvalidVersion as error:
        raise ValueError(str(error)) from None


class VersionRange(Struct, frozen=True, array_like=True):
    """Comma-separated comparisons, all of which must hold; empty holds for every version."""

    text: str

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """`>=0.4.0,<0.8.0`.  Raises ValueError."""
        text = text.strip()
        _bounds(text)
        return cls(text)

    def __contains__(self, version: Version) -> bool:
        return not self.text or all(holds(version, bound) for holds, bound in _bounds(self.text))


@lru_cache(maxsize=4096)
def _bounds(text: str) -> tuple[_Bound, ...]:
    """Raises ValueError."""
    bounds: list[_Bound] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        for sign, holds in _OPERATORS:
            if part.startswith(sign):
                bounds.append((holds, parse_version(part[len(sign) :].strip())))
                break
        else:
            raise ValueError(f"not a version comparison: {part!r} (write >=1.2, <2.0, ==1.0 ...)")
    return tuple(bounds)


EVERY_VERSION = VersionRange("")
