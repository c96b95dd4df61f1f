"""Remarks stay few, however much there is to say."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 5


def few(remarks: Sequence[str], what: str) -> list[str]:
    """The first ones, and how many more there are of `what`."""
    more = len(remarks) - MOST
    return [*remarks] if more <= 0 else [*remarks[:MOST], f"... and {more} more {what}"]
