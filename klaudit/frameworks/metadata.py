"""The version that an unpacked wheel or source distribution says of itself (core metadata, PEP 566)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from msgspec import Struct
from packaging.version import Version

from klaudit.frameworks.versions import parse_version
from klaudit.patterns import rare
from klaudit.tree import Tree

_FILES = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}
_FIELD = rare(r"(?m)^(Name|Version):[ \t]*(\S+)[ \t\r]*$")
_JOINTS = re.compile(r"[-_.]+")  # all the same in a distribution's name (PEP 503)
_MOST_BYTES = 4_000  # the two fields stand at the top


class Installed(Struct, frozen=True):
    """`line` is where `path` says the version."""

    version: Version
    path: str
    line: int


def installed_at(
    tree: Tree, root: str, distributions: tuple[str, ...], text_of: Callable[[str], str | None]
) -> Installed | None:
    """What the metadata beside the packages of `root` says of one of the distributions; None where it says several things."""
    names = set(map(_normalised, distributions))
    found = [
        installed
        for path in _candidates(tree, root, names)
        if (installed := _read(path, text_of(path) or "", names)) is not None
    ]
    return found[0] if len({each.version for each in found}) == 1 else None


def _candidates(tree: Tree, root: str, names: set[str]) -> Iterator[str]:
    for folder in sorted(tree.folders(root)):
        stem, suffix = posixpath.splitext(folder)
        if suffix in _FILES and _normalised(stem.partition("-")[0]) in names:
            yield posixpath.join(root, folder, _FILES[suffix])
    if "PKG-INFO" in tree.files(root):
        yield posixpath.join(root, "PKG-INFO")


def _read(path: str, text: str, names: set[str]) -> Installed | None:
    head = text[:_MOST_BYTES].replace("\r\n", "\n").partition("\n\n")[0]
    fields = {match[1]: match for match in reversed(list(_FIELD.finditer(head)))}
    if "Name" not in fields or "Version" not in fields or _normalised(fields["Name"][2]) not in names:
        return None
    try:
        version = parse_version(fields["Version"][2])
    except ValueError:
        return None
    return Installed(version, path, head.count("\n", 0, fields["Version"].start()) + 1)


def _normalised(name: str) -> str:
    return _JOINTS.sub("-", name).lower()
