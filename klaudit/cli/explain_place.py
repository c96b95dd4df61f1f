"""`klaudit explain FILE:LINE`: what a line has to do with a KL term, in a launch, a configuration or a formula."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from klaudit.cli.output import inside_of, prefix_of, wants_colour, width_of_stdout
from klaudit.cli.parameters import Failure
from klaudit.configuration import Options
from klaudit.discover import Targets, locate
from klaudit.model import Evidence, Finding, Report, Setup, Span
from klaudit.readers.source import Source, UnreadableError
from klaudit.reports import View
from klaudit.reports.visible import visible
from klaudit.tree import TooLargeError, Tree

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?::\d+)?")
_PYTHON = (".py", ".ipynb")
_OWN_CODE = "custom"


class Place(Struct, frozen=True):
    """A line of a file, as a report names it: `FILE:LINE` or `FILE:LINE:COLUMN`."""

    path: str
    line: int

    @classmethod
    def of(cls, text: str) -> Place | None:
        match = _PLACE.fullmatch(text)
        return None if match is None else cls(match["path"], int(match["line"]))


def explain(place: Place, color: str) -> tuple[Iterator[str], frozenset[str]]:
    """The findings and set-ups that the line has a part in, with the ids of their rules; else the formula that stands there.

    Raises Failure for what cannot be read, KlauditError for a configuration file that cannot be used.
    """
    from klaudit.reports.text import render_part

    targets = locate([place.path], Options())
    if targets.problems or not targets.files:
        raise Failure(f"{place.path}: {targets.problems[0].message if targets.problems else 'a folder, not a file'}")
    path = targets.files[0]
    tree = Tree(targets.root)
    source = _load(place, tree, path)
    _check(place, source)
    view = _view(targets, tree, color)
    report = _scan(place, targets)
    part = _part(report, path, place.line)
    if part.findings or part.setups:
        return render_part(part, view), frozenset(finding.rule for finding in part.findings)
    if path.endswith(_PYTHON):
        return _formula(place, source, view), frozenset()
    if report.errors:
        raise Failure(f"{place.path}: {report.errors[0].message}")
    return _nothing(place, report, view), frozenset()


def _scan(place: Place, targets: Targets) -> Report:
    """The report on the file as a part of its repository."""
    from klaudit import engine
    from klaudit.effective import effective

    return engine.scan([place.path], effective(targets.root).options)


def _part(report: Report, path: str, line: int) -> Report:
    """What the line has a part in, counted or withheld.  Hand-written formulas are left to their own explanation."""
    own = {setup.span for setup in report.setups if setup.framework == _OWN_CODE}
    setups = [setup for setup in report.setups if setup.span not in own]
    told = {setup.span for setup in setups if _bears_on(setup, path, line)}

    def is_here(finding: Finding) -> bool:
        if finding.span in own or finding.launch in own:
            return False
        return finding.launch in told or _is_on(finding.span, path, line) or _is_set_at(finding.related, path, line)

    withheld = tuple(each for each in report.withheld if is_here(each.finding))
    findings = (*filter(is_here, report.findings), *(each.finding for each in withheld))
    told |= {finding.launch for finding in findings if finding.launch is not None}
    chosen = tuple(setup for setup in setups if setup.span in told)
    return replace(report, findings=findings, withheld=withheld, setups=chosen, errors=())


def _bears_on(setup: Setup, path: str, line: int) -> bool:
    return _is_on(setup.span, path, line) or any(_is_set_at(term.evidence, path, line) for term in setup.terms)


def _is_on(span: Span, path: str, line: int) -> bool:
    return span.path == path and span.line <= line <= span.end_line


def _is_set_at(evidence: Iterable[Evidence], path: str, line: int) -> bool:
    return any((each.path, each.line) == (path, line) for each in evidence)


def _nothing(place: Place, report: Report, view: View) -> Iterator[str]:
    from klaudit.reports.setups import render

    yield f"{visible(place.path)}:{place.line}: no part of a KL set-up\n"
    if report.setups:
        yield "those of this file:\n"
        yield from render(report, view)


def _formula(place: Place, source: Source, view: View) -> Iterator[str]:
    """The reasoning about a line of Python, with paths as seen from the working directory."""
    from klaudit.code.scan import explain_line

    try:
        text = explain_line(source, place.line, view.source, named=view.path)
    except UnreadableError as error:
        raise Failure(f"{place.path}: {error}") from None
    for row in text.splitlines():
        yield visible(row) + "\n"


def _load(place: Place, tree: Tree, path: str) -> Source:
    try:
        source = tree.source(path)
    except TooLargeError as error:
        raise Failure(f"{place.path}: {error}") from None
    except OSError as error:
        raise Failure(f"{place.path}: {error.strerror or error}") from None
    if source is None:
        raise Failure(f"{place.path}: no such file")
    return source


def _check(place: Place, source: Source) -> None:
    lines = source.data.count(b"\n") + 1
    if not 0 < place.line <= lines:
        raise Failure(f"{place.path}: there is no line {place.line}, the file has {lines}")


def _view(targets: Targets, tree: Tree, color: str) -> View:
    is_terminal = sys.stdout.isatty()
    return View(
        source=tree.readable,
        prefix=prefix_of(targets.root),
        inside=inside_of(targets.root),
        width=width_of_stdout(),
        wrap=is_terminal,
        colour=wants_colour(color, is_terminal=is_terminal),
    )
