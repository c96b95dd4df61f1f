"""A wish for one launch -> the edits that fulfil it, by the kind of place where the launch is configured."""

from __future__ import annotations

from klaudit.fixes.code import Code
from klaudit.fixes.commands import Commands
from klaudit.fixes.keys import Keys
from klaudit.fixes.literals import spell
from klaudit.fixes.page import CannotEditError
from klaudit.fixes.trainers import trainer_edits
from klaudit.fixes.wish import Pages, Wish
from klaudit.frameworks.resolution import Resolution
from klaudit.frameworks.rules import CodeChange
from klaudit.model import Edit


def edits_of(
    wanted: Wish, resolution: Resolution, pages: Pages, change: CodeChange | None = None
) -> tuple[list[Edit], tuple[str, ...]]:
    """The edits, and what the user should know of them.  Raises CannotEditError where there is no safe place."""
    launch = resolution.launch
    if change is not None:
        return _with_trainer(wanted, resolution, pages, change)
    match launch.kind:
        case "launch":
            return Commands(pages, resolution).edits(wanted), ()
        case "config":
            return Keys(pages, resolution).edits(wanted), ()
    return Code(pages, resolution).edits(wanted), ()


def _with_trainer(
    wanted: Wish, resolution: Resolution, pages: Pages, change: CodeChange
) -> tuple[list[Edit], tuple[str, ...]]:
    launch = resolution.launch
    if launch.kind != "code":
        raise CannotEditError(f"the code that makes the {change.trainer} has to change, and stands elsewhere")
    page = pages.of(launch.head.path)
    amount = next(
        state.coefficient for state in resolution.terms if state.term.active and state.coefficient is not None
    )
    coefficient = spell(amount.value, "python")
    edits = Code(pages, resolution).edits(wanted) if wanted.write or wanted.remove else []
    notes = [f"{name} is dropped: the other class does not know it" for name in wanted.remove]
    return [*edits, *trainer_edits(page, change, page.at(launch.head.start), coefficient)], tuple(notes)
