"""A repository -> all that `klaudit init` proposes for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from klaudit.gate.baseline_file import FILE_NAME, row_of, write
from klaudit.init.pipelines import github, gitlab
from klaudit.init.pre_commit import FILE as PRE_COMMIT
from klaudit.init.pre_commit import pre_commit
from klaudit.init.proposal import Change, Proposal
from klaudit.init.settings import settings
from klaudit.init.surroundings import Surroundings
from klaudit.model import Finding, Report
from klaudit.reports.wording import counted
from klaudit.tree import Tree


class Wishes(Struct, frozen=True):
    """Which ways of using klaudit are wanted; None where the repository itself says."""

    github: bool | None = None
    gitlab: bool | None = None
    pre_commit: bool | None = None
    baseline: bool = False


def propose(root: str, report: Report, wishes: Wishes) -> Proposal:
    """What to change below `root`, the root of the repository that `report` is of.  Nothing is written."""
    surroundings = Surroundings(Tree(root))
    proposals = list(_proposals(surroundings, report, wishes))
    return Proposal(
        tuple(change for proposal in proposals for change in proposal.changes),
        tuple(note for proposal in proposals for note in proposal.notes),
    )


def _proposals(surroundings: Surroundings, report: Report, wishes: Wishes) -> Iterator[Proposal]:
    is_new = wishes.baseline and surroundings.read(FILE_NAME) is None
    yield settings(surroundings, _assumed(report), FILE_NAME if is_new else None)
    if _first(wishes.pre_commit, surroundings.read(PRE_COMMIT) is not None):
        yield pre_commit(surroundings)
    elif wishes.pre_commit is None:
        yield Proposal(notes=("there is no .pre-commit-config.yaml: --pre-commit adds one with the hook",))
    on_github = _first(wishes.github, surroundings.uses_github)
    on_gitlab = _first(wishes.gitlab, surroundings.uses_gitlab)
    if on_github:
        yield github(surroundings)
    if on_gitlab:
        yield gitlab(surroundings)
    if not on_github and not on_gitlab and wishes.github is None and wishes.gitlab is None:
        yield Proposal(notes=("no remote on GitHub or GitLab is known: --github or --gitlab sets up a pipeline",))
    if is_new:
        yield Proposal((Change(FILE_NAME, None, _listed(report.findings)),))
    elif wishes.baseline:
        yield Proposal(notes=(f"{FILE_NAME} is there already: `klaudit baseline update` brings it up to date",))
    elif report.findings:
        count = counted(len(report.findings), "finding")
        yield Proposal(notes=(f"{count} today: --baseline lists what is there, so that only what is new counts",))


def _assumed(report: Report) -> dict[str, str]:
    """Frameworks found whose version nothing says, and the one that is assumed."""
    versions = {setup.framework: setup.version for setup in report.setups}
    return {name: version.value for name, version in versions.items() if version.source == "assumed" and version.value}


def _listed(findings: tuple[Finding, ...]) -> bytes:
    """A baseline at the root of the repository, as `klaudit baseline write` makes it."""
    with tempfile.TemporaryDirectory(prefix="klaudit-") as folder:
        file = Path(folder) / FILE_NAME
        write(str(file), [row_of(finding, "") for finding in findings])
        return file.read_bytes()


def _first(wished: bool | None, found: bool) -> bool:
    return found if wished is None else wished
