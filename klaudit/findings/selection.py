"""Which findings the user wants to see."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.configuration import Options
from klaudit.findings import catalogue
from klaudit.model import Finding


class Selection:
    """`select` and `ignore` by id, prefix of an id or name; the more exact one of the two wins, `ignore` on a tie."""

    def __init__(self, options: Options, root: str) -> None:
        self._select = options.select
        self._ignore = options.ignore
        self._per_file = [(ignores.selectors, ignores.globs.matcher(root)) for ignores in options.per_file_ignores]

    def keeps(self, finding: Finding) -> bool:
        wanted = 0 if not self._select else _closeness(self._select, finding)
        if wanted < 0 or (self._ignore and _closeness(self._ignore, finding) >= max(wanted, 0)):
            return False
        return not any(
            _closeness(selectors, finding) >= 0 and matches(finding.span.path) for selectors, matches in self._per_file
        )


def unknown_selectors(selectors: Iterable[str]) -> list[str]:
    """Those that name no finding of the catalogue."""
    known = catalogue.names()
    return [
        each
        for each in selectors
        if each not in known and not any(id.startswith(each.upper()) for id in known.values())
    ]


def _closeness(selectors: Iterable[str], finding: Finding) -> int:
    """Length of the longest selector that names the finding; -1 where none does."""
    closest = -1
    for selector in selectors:
        if selector == finding.name:
            return 100
        if selector.upper() == "ALL" or finding.rule.startswith(selector.upper()):
            closest = max(closest, 0 if selector.upper() == "ALL" else len(selector))
    return closest
