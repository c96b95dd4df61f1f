"""One file -> what its launches train with, and a draft for each that has a finding."""

from __future__ import annotations

from dataclasses import dataclass

from klaudit.configuration import Options
from klaudit.findings.judging import Subject, judge
from klaudit.findings.selection import Selection
from klaudit.fixes.choice import alternatives, choose
from klaudit.fixes.drafts import Draft
from klaudit.fixes.migration import Request, Unchanged
from klaudit.fixes.rereading import Reading
from klaudit.fixes.snapshot import resolutions, trained
from klaudit.fixes.watched import WatchedTree
from klaudit.fixes.wish import Pages
from klaudit.frameworks.migrate import Impossible, broken_code
from klaudit.frameworks.resolution import Resolution
from klaudit.gate.excuses import Excuses
from klaudit.model import Finding
from klaudit.scanner import Scanner

# Findings that say of a set-up that it descends something else; the others are not mended by another placement or estimator.
_MENDED = frozenset(
    {
        "detached-loss-penalty",
        "k3-in-loss",
        "k3-in-reward",
        "k1-in-loss",
        "biased-reward-estimator",
        "biased-loss-estimator",
        "std-normalised-penalty",
        "ignored-penalty",
        "token-level-only",
    }
)
_OF_CODE = frozenset({"penalty-sign", "reversed-ratio"})  # where the tree's own code is to blame, no setting mends them
_WITHOUT_EFFECT = ("no-gradient", "ignored")
_SWITCHED_ON = "so far the penalty has had no effect: this switches it on"


@dataclass(frozen=True, slots=True)
class Looked:
    reading: Reading
    drafts: tuple[Draft, ...]
    unchanged: tuple[Unchanged, ...]


class Drafter:
    def __init__(self, scanner: Scanner, tree: WatchedTree, pages: Pages, options: Options, request: Request) -> None:
        self._scanner = scanner
        self._tree = tree
        self._pages = pages
        self._options = options
        self._request = request
        self._selection = Selection(options, tree.root)
        self._excuses = Excuses(tree, options)

    def look(self, path: str) -> Looked:
        """Raises what reading the file may raise."""
        self._tree.start()
        launches = list(resolutions(self._scanner, path))
        reading = Reading(tuple(map(trained, launches)), self._tree.drawn_on(path))
        drafts: list[Draft] = []
        unchanged: list[Unchanged] = []
        for at, resolution in enumerate(launches):
            rules, excuses = self._mended(resolution)
            if excuses and not rules:
                unchanged.append(Unchanged(resolution.setup, tuple(excuses), "; ".join(excuses.values())))
            match self._draft(path, at, resolution, rules) if rules else None:
                case Draft() as draft:
                    if any(term.verdict in _WITHOUT_EFFECT for term in resolution.setup.terms):
                        draft.notes = (_SWITCHED_ON,)
                    draft.write(resolution, self._pages, {})
                    drafts.append(draft)
                case Unchanged() as refused:
                    unchanged.append(refused)
        return Looked(reading, tuple(drafts), tuple(unchanged))

    def rules_of(self, resolution: Resolution) -> tuple[str, ...]:
        """The rules of the selected findings of a launch that another set-up mends, without those that are excused."""
        return self._mended(resolution)[0]

    def _mended(self, resolution: Resolution) -> tuple[tuple[str, ...], dict[str, str]]:
        """The selected findings of a launch that another set-up mends, notes only where the user selects; and those that are excused."""
        names = _MENDED | _OF_CODE if broken_code(resolution) is not None else _MENDED
        found = [finding for finding in judge(Subject(resolution)) if finding.name in names]
        rules: dict[str, None] = {}
        excuses: dict[str, str] = {}
        for finding in filter(self._is_selected, found):
            if excuse := self._excuses.of(finding, resolution.setup):
                excuses[finding.rule] = excuse
            else:
                rules[finding.rule] = None
        return tuple(rules), excuses

    def _is_selected(self, finding: Finding) -> bool:
        return (finding.severity != "note" or bool(self._options.select)) and self._selection.keeps(finding)

    def _draft(self, path: str, at: int, resolution: Resolution, rules: tuple[str, ...]) -> Draft | Unchanged:
        request = self._request
        change = choose(resolution, request)
        instead = tuple(alternatives(resolution, request))
        if isinstance(change, Impossible):
            return Unchanged(resolution.setup, rules, change.why, instead)
        if change.recipe.safety == "unsafe" and not request.unsafe:
            return Unchanged(resolution.setup, rules, "the change is not safe: --unsafe makes it", instead)
        return Draft.of(path, at, resolution, rules, change, instead)
