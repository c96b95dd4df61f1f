"""The job on GitHub or GitLab: a file of our own, never a change of somebody else's job."""

from __future__ import annotations

import json
import re

from klaudit.init.proposal import Change, Proposal, template
from klaudit.init.surroundings import Surroundings
from klaudit.init.yaml_lists import CannotAppendError, append

WORKFLOW = ".github/workflows/klaudit.yml"
GITLAB = ".gitlab-ci.yml"
GITLAB_JOB = ".gitlab/klaudit.yml"
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")


def github(surroundings: Surroundings) -> Proposal:
    """A workflow, unless one runs klaudit already."""
    used = _workflow_with_klaudit(surroundings)
    if used is not None:
        return Proposal(notes=(f"{used} runs klaudit already: left as it is",))
    branch = surroundings.main_branch
    shown = branch if _PLAIN.fullmatch(branch) else json.dumps(branch)
    return Proposal((Change(WORKFLOW, None, template("github.yml", BRANCH=shown).encode()),))


def gitlab(surroundings: Surroundings) -> Proposal:
    """A job in a file of its own, and the line that includes it."""
    if surroundings.read(GITLAB_JOB) is not None:
        return Proposal(notes=(f"{GITLAB_JOB} is there already: left as it is",))
    job = Change(GITLAB_JOB, None, template("gitlab.yml").encode())
    included = f"- local: {GITLAB_JOB}\n"
    pipeline = surroundings.read(GITLAB)
    if pipeline is None:
        return Proposal((job, Change(GITLAB, None, f"include:\n  {included}".encode())))
    if b"klaudit" in pipeline:
        return Proposal(notes=(f"{GITLAB} names klaudit already: left as it is",))
    try:
        return Proposal((job, Change(GITLAB, pipeline, append(GITLAB, pipeline, "include", included))))
    except CannotAppendError as error:
        return Proposal((job,), (f"{GITLAB}: {error}; add `local: {GITLAB_JOB}` to its `include` by hand",))


def _workflow_with_klaudit(surroundings: Surroundings) -> str | None:
    folder = ".github/workflows"
    for name in sorted(surroundings.tree.files(folder)):
        path = f"{folder}/{name}"
        if path == WORKFLOW or b"klaudit" in (surroundings.read(path) or b""):
            return path
    return None
