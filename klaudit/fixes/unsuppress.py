"""Suppressions that nothing needs any more, taken out again: `klaudit suppress --remove-unused`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klaudit.fixes.edits import apply
from klaudit.fixes.page import CannotEditError, Page
from klaudit.fixes.suppress import Annotation, Refused
from klaudit.gate.comments import Range
from klaudit.gate.silencers import Silencers
from klaudit.gate.silencing import Silencer, Suppression
from klaudit.model import Edit, Finding, Report
from klaudit.readers.source import UnreadableError
from klaudit.tree import Tree

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\f\xef\xbb\xbf"


def remove_unused(report: Report, tree: Tree) -> Annotation:
    """The comments without the rules that a report found unused; whole comments, and their lines, where no rule is left.

    What is wrong with a comment otherwise (a misspelt rule, a block without an end) is left to its author.
    """
    annotation = Annotation()
    silencers = Silencers(tree)
    for held in report.withheld:
        for suppression in silencers.suppressing(held.finding) if held.by == "suppression" else ():
            suppression.used.add(held.finding.rule)
    told: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.name == "unused-suppression":
            told.setdefault(finding.span.path, []).append(finding)
    for path, silencer in silencers.of(sorted(told)):
        unused = _unused(silencer, told[path])
        if not unused:
            continue
        data = silencer.source.data
        try:
            page = Page.of(silencer.source) if path.endswith(".ipynb") else None
            after = apply(data, _edits(silencer, unused, page))
        except (CannotEditError, UnreadableError) as error:
            annotation.refused.append(Refused(path, ("KLA001",), str(error)))
            continue
        annotation.originals[path], annotation.contents[path] = data, after
        annotation.count += sum(suppression.directive.verb != "ignore-end" for suppression, _ in unused)
    return annotation


def _unused(silencer: Silencer, told: Iterable[Finding]) -> list[tuple[Suppression, set[str]]]:
    """Suppressions with the rules to take out of them; the end of a block loses what its start does."""
    places = {(finding.span.start, finding.span.end) for finding in told}
    found: dict[int, tuple[Suppression, set[str]]] = {}
    for suppression in silencer.suppressions:
        if suppression.problem or (suppression.span.start, suppression.span.end) not in places:
            continue
        for rule in suppression.directive.rules - suppression.used:
            found.setdefault(id(suppression), (suppression, set()))[1].add(rule)
            if (end := suppression.ends.get(rule)) is not None:
                found.setdefault(id(end), (end, set()))[1].add(rule)
    return list(found.values())


def _edits(silencer: Silencer, unused: Iterable[tuple[Suppression, set[str]]], page: Page | None) -> Iterator[Edit]:
    gone: set[int] = set()
    for suppression, rules in unused:
        names = suppression.directive.names
        kept = [name for name in names if name.rule not in rules]
        if kept:
            text = _text(suppression)
            list_of = ", ".join(text[name.start : name.end] for name in kept)
            yield _edit(suppression, page, _in_piece(suppression, names[0].start, names[-1].end), list_of)
        elif names or suppression.closes <= rules:  # not an end that still ends something
            gone.add(id(suppression))
    by_comment: dict[tuple[int, Range], list[Suppression]] = {}
    for suppression in silencer.suppressions:
        by_comment.setdefault((id(suppression.piece), suppression.comment), []).append(suppression)
    for group in by_comment.values():
        yield from _removals(group, gone, page)


def _removals(group: list[Suppression], gone: set[int], page: Page | None) -> Iterator[Edit]:
    """Edits that take directives out of one comment."""
    text = _text(group[0])
    tail = len(text) - len(text[group[-1].directive.end :].lstrip())  # what other tools are told
    if all(id(each) in gone for each in group) and group[0].directive.start == 0 and tail == len(text):
        yield _edit(group[0], page, _line(group[0]), "")
        return
    for each, following in zip(group, [*(other.directive.start for other in group[1:]), tail], strict=True):
        if id(each) in gone:
            start, end = each.directive.start, following
            if end == len(text):
                start = len(text[:start].rstrip())
            yield _edit(each, page, _in_piece(each, start, end), "")


def _text(suppression: Suppression) -> str:
    return suppression.piece.data[slice(*suppression.comment)].decode("utf-8", "surrogateescape")


def _in_piece(suppression: Suppression, start: int, end: int) -> Range:
    """Bytes of the piece, given characters of the comment."""
    text, first = _text(suppression), suppression.comment[0]
    sizes = (len(text[:at].encode("utf-8", "surrogateescape")) for at in (start, end))
    return first + next(sizes), first + next(sizes)


def _line(suppression: Suppression) -> Range:
    """A comment with the blanks before it; alone on its line, the line."""
    data, (start, end) = suppression.piece.data, suppression.comment
    line = data.rfind(b"\n", 0, start) + 1
    before = data[line:start]
    if before.strip(_BLANK):
        return line + len(before.rstrip(b" \t")), end
    newline = data.find(b"\n", end)
    return line + (len(_BOM) if before.startswith(_BOM) else 0), len(data) if newline == -1 else newline + 1


def _edit(suppression: Suppression, page: Page | None, place: Range, text: str) -> Edit:
    source = suppression.piece.source
    start, end = source.span(*place).start, source.span(*place).end
    if page is not None:
        first = page.at(start)
        return page.edit(first, page.end(first, end), text)
    root = source.parent
    if root is not None and not text:  # a line of fenced code goes with what stands before it
        line = root.data.rfind(b"\n", 0, start) + 1
        if not root.data[line:start].strip(b" \t>"):
            start = line
    return Edit(source.path, start, end, text)
