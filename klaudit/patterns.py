"""Regular expressions that are compiled when they are first used.

To compile one takes longer than to import the module around it, and most scans meet nothing that the rarer ones are for.
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, cast


def rare(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, as far as its methods and attributes go; it is no argument for the functions of `re`."""
    return cast("re.Pattern[AnyStr]", _Rare(pattern, flags))


class _Rare(Generic[AnyStr]):
    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._given: tuple[AnyStr, int] = (pattern, flags)

    def __getattr__(self, name: str) -> object:
        """Called only for what is not there yet: what was used once is at hand from then on."""
        pattern, flags = self._given
        value = getattr(re.compile(pattern, flags), name)
        setattr(self, name, value)
        return value
