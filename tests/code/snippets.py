"""Helpers of the code tests: analyse a text, and what it says in few words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from klaudit.code.analyse import analyse
from klaudit.code.judge import findings
from klaudit.code.result import CodeResult, Formula
from klaudit.model import Finding
from klaudit.readers.source import Source


def result_of(
    code: str, files: Mapping[str, str] | None = None, path: str = "trainer.py", *, prefilter: bool = True
) -> CodeResult:
    """The analysis of a file; `files` are others of the same tree, by path."""
    tree = {name: Source(name, textwrap.dedent(text).encode()) for name, text in (files or {}).items()}
    return analyse(Source(path, textwrap.dedent(code).encode()), load=tree.get, prefilter=prefilter)


def used(code: str, files: Mapping[str, str] | None = None) -> list[Formula]:
    """The formulas that reach a loss or a reward."""
    return [formula for formula in result_of(code, files).formulas if formula.placement in ("loss", "reward")]


def only(code: str, files: Mapping[str, str] | None = None) -> Formula:
    found = used(code, files)
    assert len(found) == 1, [(formula.span.line, formula.placement, formula.text) for formula in found]
    return found[0]


def findings_of(code: str, files: Mapping[str, str] | None = None, path: str = "trainer.py") -> tuple[Finding, ...]:
    return findings(result_of(code, files, path))


def rules_of(code: str, files: Mapping[str, str] | None = None, *, notes: bool = False) -> list[str]:
    """Ids of the findings, notes left out."""
    return sorted(finding.rule for finding in findings_of(code, files) if notes or finding.severity != "note")


def told(formula: Formula) -> tuple[str, str, str, int]:
    """Placement, estimator, gradient and sign."""
    what = formula.what
    return formula.placement, what.estimator, what.gradient, formula.sign(what)
