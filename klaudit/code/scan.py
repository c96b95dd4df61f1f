"""The formulas of one file as the rest of the pipeline takes them: set-ups and findings."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from klaudit.model import Finding, Setup
from klaudit.readers.source import Source


class Formulas(Struct, frozen=True):
    setups: tuple[Setup, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_formulas(source: Source, load: Callable[[str], Source | None], *, prefilter: bool = True) -> Formulas:
    """Set-ups and findings of a module or notebook.  Raises UnreadableError where it is not Python."""
    from klaudit.code.analyse import analyse  # heavy, and needed for few files
    from klaudit.code.judge import findings, setups

    code: Source | None = source
    if source.path.endswith(".ipynb"):
        from klaudit.readers.notebook import read_notebook

        python = read_notebook(source).python
        code = None if python is None else python.source
    if code is None:
        return Formulas()
    result = analyse(code, load=load, prefilter=prefilter)
    return Formulas(tuple(setups(result)), tuple(findings(result)))
