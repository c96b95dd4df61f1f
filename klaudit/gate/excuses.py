"""Why a finding is left alone: for those that act on findings one by one, as `klaudit fix` does."""

from __future__ import annotations

import posixpath

from klaudit.configuration import Options
from klaudit.gate.allowances import Allowances, place_of
from klaudit.gate.silencers import Silencers
from klaudit.model import Finding, Setup
from klaudit.tree import Tree


class Excuses:
    """The comments of a tree that suppress, and what the configuration allows."""

    def __init__(self, tree: Tree, options: Options) -> None:
        self._silencers = Silencers(tree) if options.suppressions else None
        self._allowances = Allowances(options, tree.root)

    def of(self, finding: Finding, setup: Setup) -> str:
        """What excuses a finding about this set-up, in a sentence; empty where nothing does."""
        found = self._silencers.suppressing(finding) if self._silencers is not None else ()
        for suppression in found:
            reason = f": {suppression.directive.reason}" if suppression.directive.reason else ""
            return f"{finding.rule} is suppressed by the comment on line {suppression.span.line}{reason}"
        self._allowances.know((setup,))
        allowed = self._allowances.of(finding)
        if allowed is None:
            return ""
        return f"{finding.rule} is allowed by {posixpath.basename(place_of(allowed)) or 'the configuration'}: {allowed.reason}"
