"""Why a finding is left alone: for those that act on findings one by one, as `klaudit fix` does."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from klaudit.configuration import Options
from klaudit.gate.allowances import Allowances, place_of
from klaudit.gate.directives import MARKER
from klaudit.gate.silencers import Silencers
from klaudit.gate.silencing import Silencer, Suppression
from klaudit.model import Finding, Setup
from klaudit.readers.source import Source
from klaudit.tree import Tree


class Excuses:
    """The comments of a tree that suppress, and what the configuration allows."""

    def __init__(self, tree: Tree, options: Options) -> None:
        self._silencers = Silencers(tree) if options.suppressions else None
        self._allowances = Allowances(options, tree.root)
        self._latest: Silencer | None = None

    def of(self, finding: Finding, setup: Setup) -> str:
        """What excuses a finding about this set-up, in a sentence; empty where nothing does."""
        found = self._silencers.suppressing(finding) if self._silencers is not None else ()
        return _suppressed(finding, found) or self._allowed(finding, setup)

    def in_text(self, finding: Finding, setup: Setup, source: Source) -> str:
        """The same for a finding in a text that may not be the file's any more."""
        found: Sequence[Suppression] = ()
        if self._silencers is not None and MARKER in source.data:
            if self._latest is None or self._latest.source.data != source.data:
                self._latest = Silencer(source)
            found = self._latest.suppressing(finding)
        return _suppressed(finding, found) or self._allowed(finding, setup)

    def _allowed(self, finding: Finding, setup: Setup) -> str:
        self._allowances.know((setup,))
        allowed = self._allowances.of(finding)
        if allowed is None:
            return ""
        place = posixpath.basename(place_of(allowed)) or "the configuration"
        return f"{finding.rule} is allowed by {place}: {allowed.reason}"


def _suppressed(finding: Finding, found: Sequence[Suppression]) -> str:
    if not found:
        return ""
    reason = f": {found[0].directive.reason}" if found[0].directive.reason else ""
    return f"{finding.rule} is suppressed by the comment on line {found[0].span.line}{reason}"
