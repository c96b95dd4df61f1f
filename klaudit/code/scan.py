"""The formulas of one file as the rest of the pipeline takes them: set-ups and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from klaudit.code.analyses import Analyses
from klaudit.model import Finding, Problem, Setup
from klaudit.readers.source import Source, UnreadableError

MAX_PROBLEMS = 3  # told of one file


class Formulas(Struct, frozen=True):
    """`problems` are functions that were too much to analyse."""

    setups: tuple[Setup, ...] = ()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_formulas(source: Source, analyses: Analyses, configured: Sequence[Setup] = ()) -> Formulas:
    """Set-ups and findings of a module or notebook, beside the set-ups that its configurations are.

    Raises UnreadableError where it is not Python.
    """
    from klaudit.code.judge import findings
    from klaudit.code.own_trainers import with_own_penalties

    code = python_of(source)
    if code is None:
        return Formulas(tuple(configured))
    result = analyses.of(code)
    return Formulas(with_own_penalties(configured, code, result), findings(result), _first(result.problems))


def _first(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Generated code can hold thousands of functions, none of which could be analysed."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    rest = problems[MAX_PROBLEMS]
    return *problems[:MAX_PROBLEMS], Problem(
        rest.path, rest.line, "more functions of this file were not analysed, from here on"
    )


def explain_line(
    source: Source, line: int, load: Callable[[str], Source | None], *, named: Callable[[str], str] = str
) -> str:
    """The reasoning about the formulas on a line, as text; also about what a scan passes over.  Raises UnreadableError.

    `named` says how a path is shown.
    """
    from klaudit.code.analyse import analyse
    from klaudit.code.explain import explain, is_about

    code = python_of(source)
    if code is None:
        raise UnreadableError("no Python in this notebook")
    result = analyse(code, load=load)
    if not is_about(result, line):
        result = analyse(code, load=load, prefilter=False)
    return explain(result, line, named)


def python_of(source: Source) -> Source | None:
    """The source itself, or the Python cells of a notebook; None where a notebook has none."""
    if not source.path.endswith(".ipynb"):
        return source
    from klaudit.readers.notebook import read_notebook

    python = read_notebook(source).python
    return None if python is None else python.source
