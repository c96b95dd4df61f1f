"""Where in the tree the program of an invocation lies, and how it says it is configured."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from klaudit.readers.invocation import Invocation
from klaudit.tree import Tree

_HYDRA_MAIN = re.compile(r"@hydra\.main\(([^)]{0,2000})\)")
_KEYWORD = re.compile(r"""(config_path|config_name|version_base)\s*=\s*(?:["']([^"']*)["']|None)""")
_STEM = re.compile(rb"([\w-]+)\.py\Z")
_MODULE = re.compile(rb"[ \t\\\n\"',]+(?:[\w-]+\.)*([\w-]+)")
_UNKNOWN_FOLDER = re.compile(r"^\$(?:\w+|\{\w+\})/")  # `$PWD/train.py`: known by how it ends
_LONGEST = 200  # bytes of a program's name with what stands around it
_MOST_NAMES = 1_000  # more is a list of files, not a launch script


class HydraMain(Struct, frozen=True):
    """What `@hydra.main(config_path=.., config_name=..)` says; `folder` is relative to the tree's root."""

    folder: str
    config_name: str


class Programs:
    def __init__(self, tree: Tree, files: Iterable[str]) -> None:
        self._tree = tree
        self._by_name: dict[str, list[str]] = {}
        for path in files:
            if path.endswith(".py"):
                self._by_name.setdefault(posixpath.basename(path), []).append(path)

    def file(self, invocation: Invocation, near: str) -> str | None:
        """The source file that the invocation starts, None where the tree does not hold it; `near` is the launching file."""
        folders = [invocation.directory or ".", ".", posixpath.dirname(near) or "."]
        if invocation.kind == "script":
            target = invocation.target.removeprefix("./")
            return self._find([target], folders, near)
        if invocation.kind == "module":
            path = invocation.target.replace(".", "/")
            return self._find([path + ".py", path + "/__main__.py"], folders, near)
        return None

    def module(self, qualified: str, near: str) -> str | None:
        """The file of a module by its dotted name."""
        path = qualified.replace(".", "/")
        return self._find([path + ".py", path + "/__init__.py"], [posixpath.dirname(near) or ".", "."], near)

    def of_target(self, target: str, near: str) -> str | None:
        """The file that a launch's target names, be it a script's path or a module."""
        if target.endswith(".py"):
            path = _UNKNOWN_FOLDER.sub("", target.removeprefix("./"))
            return self._find([path], [".", posixpath.dirname(near) or "."], near)
        return self.module(target, near)

    def named_in(self, data: bytes, near: str) -> Iterator[str]:
        """The files of the tree that a text may start: `name.py` or `-m package.name` stands in it.  Read as bytes, before any parsing."""
        names = {
            match[1] + b".py"
            for end in _ends(data, b".py")
            if (match := _STEM.search(data[max(end - _LONGEST, 0) : end]))
        }
        names |= {
            match[1] + b".py" for end in _ends(data, b" -m") if (match := _MODULE.match(data[end : end + _LONGEST]))
        }
        for name in sorted(map(os.fsdecode, names)):
            yield from self._by_name.get(name, ()) or self._beside(name, near)

    def hydra_main(self, path: str) -> HydraMain | None:
        """How a script says that Hydra configures it."""
        source = self._tree.readable(path)
        if source is None or b"hydra.main" not in source.data:
            return None
        match = _HYDRA_MAIN.search(source.data.decode("utf-8", "replace"))
        if match is None:
            return None
        given: dict[str, str] = dict(_KEYWORD.findall(match[1]))
        folder = given.get("config_path", "")
        if folder.startswith("pkg://"):
            folder = folder[6:].replace(".", "/")
        elif folder:
            folder = posixpath.normpath(posixpath.join(posixpath.dirname(path), folder))
        return HydraMain(folder, given.get("config_name", "").removesuffix(".yaml"))

    def _find(self, names: list[str], folders: list[str], near: str) -> str | None:
        for name in names:
            if not name.startswith("/"):
                for folder in folders:
                    path = posixpath.normpath(posixpath.join(folder, name))
                    if self._tree.is_file(path):
                        return path
        candidates = [path for name in names for path in self._ending(name.lstrip("/"))]
        return max(candidates, key=lambda path: (_shared(path, near), -len(path)), default=None)

    def _beside(self, name: str, near: str) -> list[str]:
        """For the scan of a single file, which knows of no others."""
        paths = (name, posixpath.join(posixpath.dirname(near), name))
        return [path for path in dict.fromkeys(paths) if self._tree.is_file(path)]

    def _ending(self, name: str) -> list[str]:
        if "/" not in name:  # too short to know a file by
            return []
        known = self._by_name.get(posixpath.basename(name), ())
        return [path for path in known if path.endswith("/" + name)]


@lru_cache(maxsize=4096)
def _shared(left: str, right: str) -> int:
    count = 0
    for a, b in zip(left.split("/"), right.split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count


def _ends(data: bytes, mark: bytes) -> Iterator[int]:
    """Where the first occurrences of `mark` end."""
    at = data.find(mark)
    for _ in range(_MOST_NAMES):
        if at < 0:
            return
        yield at + len(mark)
        at = data.find(mark, at + len(mark))
