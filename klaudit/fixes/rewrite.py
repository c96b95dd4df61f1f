"""A wish for one launch -> the edits that fulfil it, by the kind of place where the launch is configured."""

from __future__ import annotations

from klaudit.fixes.code import Code
from klaudit.fixes.commands import Commands
from klaudit.fixes.keys import Keys
from klaudit.fixes.wish import Pages, Wish
from klaudit.frameworks.resolve import Resolution
from klaudit.model import Edit


def edits_of(wanted: Wish, resolution: Resolution, pages: Pages) -> tuple[list[Edit], tuple[str, ...]]:
    """The edits, and what the user should know of them.  Raises CannotEditError where there is no safe place."""
    launch = resolution.launch
    match launch.kind:
        case "launch":
            return Commands(pages, resolution).edits(wanted), ()
        case "config":
            return Keys(pages, resolution).edits(wanted), ()
    return Code(pages, resolution).edits(wanted), ()
