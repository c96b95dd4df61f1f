"""What was changed, since a commit, of the rules by which the gate judges: options, rule files, known findings.

Whoever wrote the change wrote these as well, and may have let it pass by them.  They hold as they are now; that they are others is told.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence

from klaudit.configuration import FILE_NAMES
from klaudit.configuration_file import has_section, settings_in
from klaudit.discover.targets import repository_of
from klaudit.gate.base import Base
from klaudit.gate.baseline_file import BaselineError, Row, rows_in
from klaudit.gate.remarks import few
from klaudit.gate.step import Gate
from klaudit.tree import Tree

_MOST_SHOWN = 10  # options


def told_of_own_rules(base: Base, gate: Gate) -> list[str]:
    """A remark for each file that says something else than at the base."""
    repository = repository_of(gate.targets.root)
    if repository is None:
        return []
    now, then = Tree(repository), base.repository(repository)
    remarks = [
        *_of_options(now, then, gate, base.name),
        *_of_rule_files(now, then, gate.options.rules, base.name),
        *_of_known_findings(now, then, gate.options.baseline, base.name),
    ]
    return few(remarks, "files that the gate judges by have changed")


def _of_options(now: Tree, then: Tree, gate: Gate, base: str) -> Iterator[str]:
    file = gate.options.settings_file
    if file is None:
        return
    start = _below(now.root, gate.targets.root)
    path = None if file.path is None else _below(now.root, file.path)
    if start is None or (file.path is not None and path is None):
        return  # one from outside is no part of any change
    before = path if file.is_named else _nearest(then, start)
    old, new = _settings(then, before), _settings(now, path)
    changed = [key for key in dict.fromkeys((*new, *old)) if old.get(key, ...) != new.get(key, ...)]
    if changed:
        shown = ", ".join(f"`{key}`" for key in changed[:_MOST_SHOWN]) + (", ..." if len(changed) > _MOST_SHOWN else "")
        yield f"{path or before}: klaudit is configured otherwise than in {base}: {shown}"


def _nearest(tree: Tree, folder: str) -> str | None:
    """The configuration file of a folder, as `klaudit.configuration.find` looks for it."""
    while True:
        for name in FILE_NAMES:
            path = posixpath.normpath(posixpath.join(folder, name))
            data = tree.data(path)
            if data is not None and (name != "pyproject.toml" or has_section(data)):
                return path
        if folder in ("", "."):
            return None
        folder = posixpath.dirname(folder)


def _settings(tree: Tree, path: str | None) -> dict[str, object]:
    data = None if path is None else tree.data(path)
    return {} if path is None or data is None else settings_in(posixpath.basename(path), data)


def _of_rule_files(now: Tree, then: Tree, folders: Sequence[str], base: str) -> Iterator[str]:
    for folder in folders:
        inside = _below(now.root, os.path.join(folder, "frameworks"))
        if inside is not None:
            for name in sorted(now.files(inside) | then.files(inside)):
                path = posixpath.normpath(posixpath.join(inside, name))
                if now.data(path) != then.data(path):
                    yield f"{path}: these rules are not those of {base}"


def _of_known_findings(now: Tree, then: Tree, file: str | None, base: str) -> Iterator[str]:
    path = None if file is None else _below(now.root, file)
    if path is not None and (more := (_known(now, path) - _known(then, path)).total()):
        yield f"{path} lists {more:,} finding{'s' * (more != 1)} that it does not list in {base}"


def _known(tree: Tree, path: str) -> Counter[tuple[str, str, str]]:
    data = tree.data(path)
    try:
        rows: Sequence[Row] = () if data is None else rows_in(path, data)
    except BaselineError:
        rows = ()
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        counts[row.path, row.rule, row.fingerprint] += row.count
    return counts


def _below(root: str, path: str) -> str | None:
    """A path as seen from the root of the repository; None for one that lies elsewhere."""
    folder, name = os.path.split(os.path.abspath(path))
    inside = os.path.relpath(os.path.join(os.path.realpath(folder), name), root).replace(os.sep, "/")
    return None if inside == ".." or inside.startswith("../") else inside
