"""What CI systems say of themselves: where the repository lies, how it is shown, and which file is the summary of the step."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath

from klaudit.discover.targets import repository_of

SUMMARY_LIMIT = 1024 * 1024  # bytes of a step's summary on GitHub, which drops larger ones
_SPARE = 1_000
_WORKSPACES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
_URL = re.compile(r"https?://[\w.:/-]+")
_NAME = re.compile(r"[\w./-]+")


def repository_prefix(root: str) -> str:
    """The way from the root of the repository to the scanned root, `""` or with a slash at the end.

    Outside a git repository the workspace of the CI system counts as one, then the working directory.
    """
    top = (
        repository_of(root)
        or _holding(root, [os.environ.get(name, "") for name in _WORKSPACES])
        or _holding(root, ["."])
    )
    if top is None or top == root:
        return ""
    return PurePath(root).relative_to(top).as_posix() + "/"


def blob_address(root: str) -> str:
    """Below which address the files of the repository are shown as they were scanned; empty where nothing is known of that."""
    github = [os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")]
    if _is_workspace(root, "GITHUB_WORKSPACE") and _URL.fullmatch(github[0]) and all(map(_NAME.fullmatch, github[1:])):
        return "{}/{}/blob/{}/".format(*github)
    gitlab = [os.environ.get(name, "") for name in ("CI_PROJECT_URL", "CI_COMMIT_SHA")]
    if _is_workspace(root, "CI_PROJECT_DIR") and _URL.fullmatch(gitlab[0]) and _NAME.fullmatch(gitlab[1]):
        return "{}/-/blob/{}/".format(*gitlab)
    return ""


def is_step_summary(file: str) -> bool:
    """Whether this is the file that GitHub shows as the summary of a step: it is shared with what else the step runs."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    return bool(summary) and os.path.realpath(file) == os.path.realpath(str(summary))


def room_in_summary(file: str) -> int:
    """Bytes that may still be written to it."""
    try:
        taken = os.path.getsize(file)
    except OSError:
        taken = 0
    return max(SUMMARY_LIMIT - taken - _SPARE, 0)


def _is_workspace(root: str, variable: str) -> bool:
    workspace = os.environ.get(variable)
    top = repository_of(root)
    return bool(workspace) and (top or _holding(root, [str(workspace)])) == os.path.realpath(str(workspace))


def _holding(root: str, folders: list[str]) -> str | None:
    for folder in folders:
        full = os.path.realpath(folder) if folder else ""
        if full and (root == full or Path(full) in Path(root).parents):
            return full
    return None
