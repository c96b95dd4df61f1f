"""The `allow` entries of a configuration at work: which finding each of them excuses."""

from __future__ import annotations

from collections.abc import Iterable

from klaudit.configuration import Options
from klaudit.findings.selection import named
from klaudit.model import Finding, Setup, Span
from klaudit.policy import Allowed
from klaudit.theory.naming import is_named


class Allowances:
    """Those of a configuration, for findings of a tree; `setups` are what findings can be about."""

    def __init__(self, options: Options, root: str, setups: Iterable[Setup] = ()) -> None:
        self.used: set[Allowed] = set()
        self._entries = [(entry, None if entry.globs is None else entry.globs.matcher(root)) for entry in options.allow]
        self._setups: dict[tuple[str, Span], list[Setup]] = {}
        self.know(setups)

    def know(self, setups: Iterable[Setup]) -> None:
        """Findings may be about these as well."""
        if any(entry.setups for entry, _ in self._entries):
            for setup in setups:
                self._setups.setdefault((setup.path, setup.span), []).append(setup)

    def of(self, finding: Finding) -> Allowed | None:
        """The first entry that allows a finding."""
        for entry, matches in self._entries:
            if entry.rules and not named(entry.rules, finding.rule, finding.name):
                continue
            if (matches is None or matches(finding.span.path)) and (not entry.setups or self._is_of(entry, finding)):
                self.used.add(entry)
                return entry
        return None

    def _is_of(self, entry: Allowed, finding: Finding) -> bool:
        """Whether the finding is about a set-up of a name that the entry has; all that stand there must be."""
        launch = finding.launch or finding.span
        setups = self._setups.get((launch.path, launch), [])
        return bool(setups) and all(any(is_named(setup, name) for name in entry.setups) for setup in setups)


def place_of(entry: Allowed) -> str:
    """`pyproject.toml:12`, empty where the entry was not read from a file."""
    return f"{entry.path}:{entry.line}" if entry.line else entry.path
