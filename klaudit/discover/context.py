"""What else of a repository has a say where only some of its files were named."""

from __future__ import annotations

from klaudit.configuration import Options
from klaudit.discover.files import Found, list_files
from klaudit.discover.targets import Targets, is_project


def list_context(targets: Targets, found: Found, options: Options) -> tuple[str, ...]:
    """The files that those of a scan may refer to, themselves among them: programs, pins and vendored source lie anywhere.

    Named files are judged as in a scan of their whole repository or project.  Outside of those only what was named is known.
    """
    if not targets.files or not is_project(targets.root):
        return found.files
    whole = list_files(Targets(targets.root, folders=(".",)), options)
    return tuple(sorted({*whole.files, *found.files}))
