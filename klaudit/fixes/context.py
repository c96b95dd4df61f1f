"""A part of a repository, seen from its root: what stands above it says the version, and what stands beside it may share its text."""

from __future__ import annotations

import posixpath
from pathlib import PurePath

from klaudit.discover.targets import Targets, repository_of


def in_context(targets: Targets) -> Targets:
    """The same targets below the root of their repository; as they are where they are in none, or are one."""
    repository = repository_of(targets.root)
    if repository is None or repository == targets.root:
        return targets
    prefix = PurePath(targets.root).relative_to(repository).as_posix()
    return Targets(
        repository,
        tuple(posixpath.normpath(posixpath.join(prefix, folder)) for folder in targets.folders),
        tuple(posixpath.join(prefix, file) for file in targets.files),
        targets.problems,
        {posixpath.join(prefix, path): data for path, data in targets.overlay.items()},
    )
