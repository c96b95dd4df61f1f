"""The hook in `.pre-commit-config.yaml`, with every other byte left as it is."""

from __future__ import annotations

import re

from klaudit.init.proposal import Change, Proposal, template
from klaudit.init.surroundings import Surroundings
from klaudit.init.yaml_lists import CannotAppendError, append

FILE = ".pre-commit-config.yaml"
_HOOK = re.compile(rb"""(?m)^[ \t]*(?:-[ \t]+)*["']?id["']?:[ \t]*["']?klaudit(?:-fix)?["']?[ \t]*(?:#.*)?\r?$""")


def pre_commit(surroundings: Surroundings) -> Proposal:
    """The hook, unless it is there; where there is no file, a new one."""
    before = surroundings.read(FILE)
    hook = template("pre-commit.yml")
    if before is None:
        indented = "".join(f"  {line}" for line in hook.splitlines(keepends=True))
        return Proposal(
            (Change(FILE, None, f"repos:\n{indented}".encode()),), ("`pre-commit install` makes git run it",)
        )
    if _HOOK.search(before):
        return Proposal(notes=(f"{FILE} has the hook already",))
    try:
        return Proposal((Change(FILE, before, append(FILE, before, "repos", hook)),))
    except CannotAppendError as error:
        return Proposal(notes=(f"{FILE}: {error}; docs/ci.md shows the hook, to be added by hand",))
