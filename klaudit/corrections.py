"""What is wrong with a word that somebody gave, and what may have been meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`: did you mean ...?` with the nearest known words, or all of them where none is near."""
    from difflib import get_close_matches

    known = sorted(known)
    near = get_close_matches(word.replace("_", "-"), known) or get_close_matches(word, known)
    if near:
        return f": did you mean {' or '.join(f'`{name}`' for name in near[:2])}?"
    return f" (known: {', '.join(known)})" if len(known) <= 20 else ""


def version_problem(text: str) -> str | None:
    """Why a text is no version, None where it is one."""
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return f"`{text}` is no version such as 0.7.0"
    return None
