"""Source excerpts: the lines that matter with what matters in them marked.  Each distinct excerpt stands in the page once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct, field

from klaudit.model import Evidence, Severity, Span
from klaudit.reports.excerpt import Mark, excerpt
from klaudit.reports.html.markup import NOTHING, Html, element, joined
from klaudit.reports.layout import Line
from klaudit.reports.view import View
from klaudit.reports.visible import cells

_WIDTH = 160  # columns: longer lines are cut around what is marked
_MOST_MARKS = 8
_MOST_FILES = 3


class Excerpts(Struct):
    """Makes the excerpts of one page.  `new` collects the ids of those that were written since it was last taken."""

    view: View
    _ids: dict[str, str] = field(default_factory=dict)
    _new: list[str] = field(default_factory=list)

    def of(self, primary: Span, evidence: Sequence[Evidence], severity: Severity = "note") -> Html:
        """What `primary` points at together with the evidence in its file, then the evidence in other files."""
        marks: dict[str, list[Mark]] = {primary.path: [Mark(primary, primary=True)]}
        for each in evidence:
            if each.span is not None and not _holds(primary, each.span):
                marks.setdefault(each.span.path, []).append(Mark(each.span, _label(each)))
        shown = (self._one(path, marks[path][:_MOST_MARKS], severity) for path in list(marks)[:_MOST_FILES])
        return joined(shown)

    def take_new(self) -> str:
        """Ids of the excerpts written since the last call, for where others must find them."""
        ids, self._new = " ".join(self._new), []
        return ids

    def _one(self, path: str, marks: Sequence[Mark], severity: Severity) -> Html:
        source = self.view.source(path)
        if source is None:
            return NOTHING
        rows = list(_rows(excerpt(source, _unique(marks), _WIDTH, severity)))
        if not rows:
            return NOTHING
        name = self.view.path(path)
        body = joined((element("div", name, class_="file"), element("code", rows)))
        if body in self._ids:
            id = self._ids[body]
            return element("p", element("a", f"Source excerpt of {name}, shown before", href=f"#{id}"), class_="again")
        id = self._ids[body] = f"x{len(self._ids) + 1}"
        self._new.append(id)
        return element("div", body, class_=f"source {severity}", id=id)


def _holds(outer: Span, inner: Span) -> bool:
    return outer.path == inner.path and outer.start <= inner.start and inner.end <= outer.end


def _label(evidence: Evidence) -> str:
    name = evidence.setting.rpartition(".")[2]
    return {"default": f"default of {name}", "variable": f"value of {name}"}.get(evidence.origin, f"sets {name}")


def _unique(marks: Iterable[Mark]) -> list[Mark]:
    """One mark a place, with all that is said of it."""
    labels: dict[Span, list[str]] = {}
    primary = next((mark.span for mark in marks if mark.primary), None)
    for mark in marks:
        labels.setdefault(mark.span, []).append(mark.label)
    return [Mark(span, "; ".join(dict.fromkeys(filter(None, told))), span == primary) for span, told in labels.items()]


# --- from lines of a terminal to marked lines ----------------------------------------------------------------------------------------


class _Row(Struct):
    """A source line, and the underlines that follow it: `(start, width, label, primary)` in columns."""

    number: str
    text: str
    underlines: list[tuple[int, int, str, bool]] = field(default_factory=list)


def _rows(lines: Iterable[Line]) -> Iterator[Html]:
    row: _Row | None = None
    for line in lines:
        gutter = line[0][0]
        if len(line) == 2 and gutter.strip(" |"):  # a source line
            if row is not None:
                yield _drawn(row)
            row = _Row(gutter.rstrip(" |").strip(), line[1][0])
        elif len(line) == 3 and row is not None:
            sign, label = line[2][0].rstrip(), ""
            bare = sign.lstrip(sign[0])
            row.underlines.append((len(line[1][0]), len(sign) - len(bare), label or bare.strip(), sign[0] == "^"))
        elif len(line) == 2 and row is not None and row.underlines:  # a label that had no room beside its underline
            start, width, _, primary = row.underlines[-1]
            row.underlines[-1] = (start, width, line[1][0], primary)
        elif gutter == "..." and row is not None:
            yield _drawn(row)
            row = None
            yield element("span", "\u22ef", class_="gap")
    if row is not None:
        yield _drawn(row)


def _drawn(row: _Row) -> Html:
    cuts = {0, len(row.text)}
    places = []
    for start, width, label, primary in row.underlines:
        first, last = _index(row.text, start), _index(row.text, start + width)
        cuts |= {first, last}
        places.append((first, last, label, primary))
    pieces: list[str | Html] = []
    ordered = sorted(cuts)
    for first, last in pairwise(ordered):
        part = row.text[first:last]
        over = [place for place in places if place[0] <= first and last <= place[1]]
        is_primary = any(primary for *_, primary in over)
        pieces.append(element("mark", part, class_="main" if is_primary else None) if over else part)
    told = "; ".join(dict.fromkeys(label for *_, label, _ in places if label))
    remark = element("span", told, class_="label") if told else None
    number = element("span", row.number, class_="number")
    return element("span", number, element("span", pieces, remark, class_="text"), class_="line")


def _index(text: str, column: int) -> int:
    """The character at a column of a terminal: wide ones take two."""
    if text.isascii():
        return min(column, len(text))
    at = 0
    for index, character in enumerate(text):
        if at >= column:
            return index
        at += cells(character)
    return len(text)
