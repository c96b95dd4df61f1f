"""Which findings the user wants to see."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.configuration import Options
from klaudit.findings import catalogue
from klaudit.model import Finding


class Selection:
    """`select` and `ignore` by id, prefix of an id or name; the more exact one of the two wins, `ignore` on a tie.

    What `per-path` says of a finding's path takes the place of the rest; `per-file-ignores` come on top.
    """

    def __init__(self, options: Options, root: str) -> None:
        self._select = options.select
        self._ignore = options.ignore
        self._per_file = [(ignores.selectors, ignores.globs.matcher(root)) for ignores in options.per_file_ignores]
        self._per_path = [
            (part, part.globs.matcher(root))
            for part in options.per_path
            if part.select is not None or part.ignore is not None
        ]

    def keeps(self, finding: Finding) -> bool:
        return self.wants(finding.rule, finding.name, finding.span.path)

    def wants(self, rule: str, name: str, path: str) -> bool:
        """Whether findings of a rule are wanted in a file."""
        select, ignore = self._select, self._ignore
        for part, matches in self._per_path:
            if matches(path):
                select = select if part.select is None else part.select
                ignore = ignore if part.ignore is None else part.ignore
        wanted = 0 if not select else _closeness(select, rule, name)
        if wanted < 0 or (ignore and _closeness(ignore, rule, name) >= max(wanted, 0)):
            return False
        return not any(
            _closeness(selectors, rule, name) >= 0 and matches(path) for selectors, matches in self._per_file
        )


def named(selectors: Iterable[str], rule: str, name: str) -> bool:
    """Whether any of the selectors names a rule."""
    return _closeness(selectors, rule, name) >= 0


def rules_named(selectors: Iterable[str]) -> frozenset[str]:
    """The rules that selectors name one by one, by id or name."""
    known = catalogue.names()
    return frozenset(known.get(each, each.upper()) for each in selectors) & frozenset(known.values())


def unknown_selectors(selectors: Iterable[str]) -> list[str]:
    """Those that name no finding of the catalogue."""
    known = catalogue.names()
    return [
        each
        for each in selectors
        if each not in known and not any(id.startswith(each.upper()) for id in known.values())
    ]


def _closeness(selectors: Iterable[str], rule: str, name: str) -> int:
    """Length of the longest selector that names the finding; -1 where none does."""
    closest = -1
    for selector in selectors:
        if selector == name:
            return 100
        if selector.upper() == "ALL" or rule.startswith(selector.upper()):
            closest = max(closest, 0 if selector.upper() == "ALL" else len(selector))
    return closest
