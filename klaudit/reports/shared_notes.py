"""Notes that many set-ups share: true of each, and told once where they would drown the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from klaudit.model import Finding
from klaudit.reports.view import View
from klaudit.reports.wording import counted

MOST = 5  # notes of one rule that are listed one by one


class SharedNote(Struct, frozen=True):
    """One rule, whose notes are about `setups` set-ups in `files` files."""

    rule: str
    name: str
    why: str
    setups: int
    files: int

    @property
    def in_words(self) -> str:
        where = f"{counted(self.setups, 'set-up')} in {counted(self.files, 'file')}"
        return f"{self.rule} {self.name}, of {where}: {self.why}. `--select {self.rule}` or --verbose lists each."


def divided(findings: Sequence[Finding], view: View) -> tuple[list[Finding], list[SharedNote]]:
    """What is listed one by one, and what is told once."""
    notes = Counter(each.rule for each in findings if _is_of_a_setup(each))
    told = {rule for rule, count in notes.items() if count > MOST and rule not in view.each_note and not view.verbose}
    listed = [each for each in findings if not (each.rule in told and _is_of_a_setup(each))]
    return listed, list(_shared(findings, told))


def _is_of_a_setup(finding: Finding) -> bool:
    return finding.severity == "note" and finding.launch is not None


def _shared(findings: Sequence[Finding], told: set[str]) -> Iterator[SharedNote]:
    for rule in sorted(told):
        mine = [each for each in findings if each.rule == rule and _is_of_a_setup(each)]
        files = len({each.span.path for each in mine})
        yield SharedNote(rule, mine[0].name, mine[0].why, len({each.launch for each in mine}), files)
