"""What makes a finding of one commit the same as one of another."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import TypeAlias

from klaudit.model import Finding, Report
from klaudit.tree import Tree

Kind: TypeAlias = tuple[str, str, str]

_LINE_NUMBER = re.compile(r"\bline \d+")
_BY_DEFAULT = re.compile(r" by default\b")


class Essences:
    """Of the findings of one report on one tree; `renamed` gives the path under which a file is compared."""

    def __init__(self, report: Report, tree: Tree, renamed: Mapping[str, str]) -> None:
        self._tree = tree
        self._renamed = renamed
        self._versions = {setup.span: setup.version.value for setup in report.setups}
        self._lines: dict[str, list[bytes]] = {}

    def kind(self, finding: Finding) -> Kind:
        """What is wrong and in which file: the same for findings that are alike."""
        path = finding.span.path
        return (self._renamed.get(path, path), finding.rule, finding.identity)

    def of(self, finding: Finding) -> Hashable:
        """What must be the same for a finding to be an old one: its kind, the values in force, and the text of its lines."""
        values = tuple((each.setting, repr(each.value)) for each in finding.related)
        message = _BY_DEFAULT.sub("", _LINE_NUMBER.sub("", self._without_version(finding)))
        return (self.kind(finding), finding.severity, message, values, self._text(finding))

    def lines(self, path: str) -> list[bytes]:
        """The lines of a file without the space around them; none where it cannot be read."""
        if path not in self._lines:
            data = self._tree.data(path)
            self._lines[path] = [] if data is None else [line.strip() for line in data.split(b"\n")]
        return self._lines[path]

    def _text(self, finding: Finding) -> bytes:
        """The lines of a finding; how they are spaced and ended does not matter."""
        lines = self.lines(finding.span.path)[finding.span.line - 1 : finding.span.end_line]
        return b" ".join(b" ".join(lines).split())

    def _without_version(self, finding: Finding) -> str:
        """The version that a launch was judged by is named in messages, but no value of the launch."""
        version = self._versions.get(finding.launch, "") if finding.launch is not None else ""
        return finding.message.replace(f" {version} ", " ") if version else finding.message
