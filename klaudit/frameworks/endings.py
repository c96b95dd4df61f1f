"""Scripts by the endings of absolute paths: where a container keeps the tree is not known, what lies below that is."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from functools import cached_property

_SYSTEM_FOLDERS = frozenset({"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr"})
_OTHER_SUFFIXES = (".py", ".json", ".yaml", ".yml", ".toml", ".ipynb", ".md")


class Endings:
    """`files` are those of the tree."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = files

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for path in self._files:
            if not path.endswith(_OTHER_SUFFIXES):
                names.setdefault(posixpath.basename(path), []).append(path)
        return names

    def script(self, path: str) -> str | None:
        """The script of the tree that an absolute path from another machine means, where no other can be meant.

        Folders keep their names there: the longest common ending tells the script, as long as it has a folder in it or the script lies at
        the root of the tree and has a name of its own.
        """
        parts = path.strip("/").split("/")
        if parts[0] in _SYSTEM_FOLDERS:
            return None
        lengths = {each: _common_ending(parts, each.split("/")) for each in self._by_name.get(parts[-1], ())}
        longest = max(lengths.values(), default=0)
        best = [each for each, length in lengths.items() if length == longest]
        if longest == 1:
            return best[0] if len(best) == 1 and "/" not in best[0] else None
        whole = [each for each in best if each.count("/") + 1 == longest]
        if len(whole) == 1 or len(best) == 1:
            return (whole or best)[0]
        return None


def _common_ending(first: list[str], second: list[str]) -> int:
    pairs = zip(reversed(first), reversed(second), strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
