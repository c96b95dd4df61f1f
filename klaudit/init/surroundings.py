"""What a repository says of itself: who hosts it, which branch is its main one, what it is set up with already."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from klaudit.tree import Tree

_REMOTE = re.compile(r'^\s*\[\s*remote\s+"[^"\n]*"\s*\][ \t]*$([^\[]*)', re.MULTILINE)
_URL = re.compile(r"^\s*url\s*=\s*(.+?)\s*$", re.MULTILINE)
_SCP = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")
_USUAL = ("main", "master")
_HEAD = re.compile(r"ref: refs/(?:heads|remotes/origin)/([\w./-]+)\s*")


class Surroundings:
    """Read through the tree, so that nothing outside the repository is looked at; its configuration is read, never obeyed."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        folder = Path(tree.root, ".git")
        self._git = None if folder.is_symlink() else Tree(folder)  # a tree keeps out of its own

    def read(self, path: str) -> bytes | None:
        """The file at a path below the root; None where there is none that can be read."""
        return self.tree.data(path)

    def _read_git(self, path: str) -> bytes:
        """A file of git's own folder; empty where there is none."""
        return (self._git.data(path) if self._git is not None else None) or b""

    @property
    def uses_github(self) -> bool:
        return self._is_hosted_by("github") or self.tree.is_folder(".github")

    @property
    def uses_gitlab(self) -> bool:
        return self._is_hosted_by("gitlab") or self.tree.is_file(".gitlab-ci.yml")

    @property
    def main_branch(self) -> str:
        """As the remote says, else one that is there under a usual name, else the branch that is checked out."""
        usual = next((name for name in _USUAL if self._has_branch(name)), None)
        return self._head("refs/remotes/origin/HEAD") or usual or self._head("HEAD") or "main"

    def _head(self, path: str) -> str | None:
        match = _HEAD.fullmatch(self._read_git(path).decode("utf-8", "replace"))
        return None if match is None else match[1]

    def _has_branch(self, name: str) -> bool:
        if self._git is not None and self._git.is_file(f"refs/heads/{name}"):
            return True
        packed = self._read_git("packed-refs").splitlines()
        return any(line.split(b" ")[-1] == f"refs/heads/{name}".encode() for line in packed)

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Host names of the remotes.  Of a linked work tree, whose repository lies elsewhere, none."""
        text = self._read_git("config").decode("utf-8", "replace")
        return frozenset(
            host for section in _REMOTE.findall(text) for url in _URL.findall(section) if (host := _host(url))
        )

    def _is_hosted_by(self, name: str) -> bool:
        return any(name in host for host in self.hosts)


def _host(url: str) -> str:
    """The host of `https://host/x`, `ssh://git@host/x` or `git@host:x`, in lower case; empty for a path."""
    if match := _SCP.match(url):
        return match[1].lower()
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
