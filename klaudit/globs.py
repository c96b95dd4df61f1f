"""Patterns written as in .gitignore, with the folder they are relative to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# Each wildcard multiplies the work of a failing match by the length of the name, so a hostile pattern could take for ever.
_MAX_IN_SEGMENT, _MAX_IN_PATTERN = 3, 4
_WILDCARDS = re.compile(r"\*+")


class Globs(Struct, frozen=True):
    """Patterns relative to the absolute folder `base`."""

    base: str
    patterns: tuple[str, ...]

    def matcher(self, root: str) -> Callable[[str], bool]:
        """A test of POSIX paths relative to `root`; patterns whose base neither holds `root` nor lies in it match nothing."""
        spec = compile_globs(self.patterns)
        above, below = _relative(root, self.base), _relative(self.base, root)
        if above is not None:
            prefix = "" if above == "." else above + "/"
            return lambda path: spec.match_file(prefix + path)
        if below is not None:
            start = below + "/"
            return lambda path: path.startswith(start) and spec.match_file(path[len(start) :])
        return lambda path: False


def any_of(globs: Sequence[Globs], root: str) -> Callable[[str], bool]:
    """Whether any of the patterns matches a POSIX path relative to `root`."""
    if not globs:  # the usual case does without importing pathspec
        return lambda path: False
    matchers = [one.matcher(root) for one in globs]
    return lambda path: any(matches(path) for matches in matchers)


def compile_globs(patterns: Sequence[str]) -> GitIgnoreSpec:
    """The patterns, later ones overruling earlier ones; those that are malformed or too costly are left out."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines([pattern for pattern in patterns if not _is_costly(pattern)])
    except (ValueError, re.error):  # from_lines does not say which
        return GitIgnoreSpec.from_lines([pattern for pattern in patterns if refusal(pattern) is None])


def refusal(pattern: str) -> str | None:
    """Why a pattern cannot be used, None where it can."""
    from pathspec import GitIgnoreSpec

    if _is_costly(pattern):
        return f"more than {_MAX_IN_SEGMENT} wildcards between two slashes, or {_MAX_IN_PATTERN} in all"
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error) as error:
        return str(error) or "not a pattern"
    return None


def _is_costly(pattern: str) -> bool:
    counts = [len(_WILDCARDS.findall(segment)) for segment in pattern.split("/")]
    return max(counts) > _MAX_IN_SEGMENT or sum(counts) > _MAX_IN_PATTERN


def _relative(path: str, folder: str) -> str | None:
    """`path` relative to `folder` as POSIX, None where it does not lie inside."""
    if path == folder:
        return "."
    start = folder.rstrip(os.sep) + os.sep
    return PurePath(path[len(start) :]).as_posix() if path.startswith(start) else None
