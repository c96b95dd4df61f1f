"""A plan of migrations for people: the diff, what changes in effect, what was left alone and why, what to watch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile

from klaudit.fixes.advice import advice
from klaudit.fixes.diff import unified
from klaudit.fixes.migration import Migration, Plan, Unchanged
from klaudit.model import Setup, Term
from klaudit.reports.layout import Cell, Line, Style, paint, paragraph, table
from klaudit.reports.setup_block import verdict_style
from klaudit.reports.view import View
from klaudit.reports.visible import visible
from klaudit.reports.wording import coefficient, counted, prose

_DIFF_STYLES: dict[str, Style] = {"+": "good", "-": "error", "@": "context"}
_HEADERS = ("", "placement", "estimator", "coefficient", "score weight w(d)", "verdict")


def diff(plan: Plan, view: View) -> Iterator[str]:
    """The patch, with paths as seen from the working directory where the tree lies below it."""
    prefix = "" if view.prefix.startswith(("/", "..")) else view.prefix
    for path in sorted(plan.contents):
        lines = unified(prefix + path, plan.originals[path], plan.contents[path])
        if not view.colour:
            yield from lines
        else:
            yield from paint((((visible(line.rstrip("\n")), diff_style(line)),) for line in lines), colour=True)


def summary(plan: Plan, view: View, *, is_written: bool) -> Iterator[str]:
    """Everything but the patch, set off from it by an empty line where there is one."""
    lines: Iterable[Line] = _lines(plan, view, is_written=is_written)
    if not plan.contents:
        lines = dropwhile(lambda line: not line, lines)
    return paint(lines, colour=view.colour)


def _lines(plan: Plan, view: View, *, is_written: bool) -> Iterator[Line]:
    groups = grouped(plan.migrations)
    for group in groups:
        yield from _migration(group, view)
    if plan.unchanged:
        yield ()
        yield (("Not changed", "strong"),)
        for of in _by_reason(plan.unchanged):
            yield from _unchanged(of, view)
    remarks = advice(plan.migrations)
    if remarks and not view.quiet:
        yield ()
        yield (("What to watch", "strong"),)
        for remark in remarks:
            yield from paragraph(f"{remark.text} ({remark.source})", view.width, first=(("- ", "plain"),), indent=2)
    yield ()
    yield ((total(plan, is_written=is_written), "strong"),)


def total(plan: Plan, *, is_written: bool) -> str:
    """`3 changes in 2 files written.`"""
    if not plan.migrations:
        return "Nothing to change." if not plan.unchanged else "Nothing that can be changed."
    what = f"{counted(len(grouped(plan.migrations)), 'change')} in {counted(len(plan.contents), 'file')}"
    return f"{what} written." if is_written else f"{what}, not written: --write does that."


def grouped(migrations: Sequence[Migration]) -> list[list[Migration]]:
    """Migrations of one place that say the same, together: a script may run one command many times."""
    groups: dict[object, list[Migration]] = {}
    for each in migrations:
        key = (each.path, each.before.span.start, each.title, _terms(each.before), _terms(each.after))
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def _migration(group: Sequence[Migration], view: View) -> Iterator[Line]:
    first = group[0]
    span = first.before.span
    place = view.place(span.path, span.line, cell=span.cell)
    yield ()
    more = f", {len(group):,} launches" if len(group) > 1 else ""
    yield from paragraph(
        f"{', '.join(first.rules)} to {first.target}{more}",
        view.width,
        first=((place, "path"), (" ", "plain")),
        indent=2,
    )
    for text in _explanations(first):
        yield from paragraph(
            prose(_as_seen(text, first.mentions, view)), view.width, first=(("  ", "plain"),), indent=4
        )
    rows = [*_rows("before", first.before), *_rows("after", first.after)]
    yield from table(_HEADERS, rows, view.width, indent=2)
    served = sorted({edit.path for edit in first.edits} - {first.path})
    if served:
        yield from paragraph(
            f"edits {', '.join(map(view.path, served))}", view.width, first=(("  ", "plain"),), indent=4
        )


def _explanations(migration: Migration) -> Iterator[str]:
    if migration.rescued:
        names = ", ".join(migration.rescued)
        yield f"also switches off group-std normalisation ({names}), inside which a rewarded k1 loses its coefficient"
    if migration.explanation:
        yield migration.explanation
    yield from migration.notes


def _as_seen(text: str, mentions: Sequence[str], view: View) -> str:
    """With the files it names as seen from the working directory."""
    if not mentions:
        return text
    either = "|".join(map(re.escape, sorted(mentions, key=len, reverse=True)))  # one may be the end of another
    return re.sub(rf"(?<![\w./-])(?:{either})(?![\w/-])", lambda found: view.path(found[0]), text)


def _rows(label: str, setup: Setup | None) -> Iterator[list[Cell]]:
    terms = [term for term in setup.terms if term.active is not False] if setup is not None else []
    if not terms:
        yield [(label, "faint"), *((text, _PLAIN) for text in ("none", "", "", "0", "inactive"))]
    for term in terms:
        yield [(label, "faint"), *_cells(term)]


_PLAIN: Style = "plain"


def _cells(term: Term) -> list[Cell]:
    return [
        (term.placement, "plain"),
        (term.estimator, "plain"),
        (coefficient(term), "plain"),
        (visible(term.score_weight), "plain"),
        (term.verdict, verdict_style(term.verdict)),
    ]


def _by_reason(unchanged: Sequence[Unchanged]) -> list[list[Unchanged]]:
    """Together what has the same reason and the same ways out."""
    groups: dict[object, list[Unchanged]] = {}
    for each in unchanged:
        groups.setdefault((each.why, tuple(each.instead)), []).append(each)
    return list(groups.values())


def _unchanged(of: Sequence[Unchanged], view: View) -> Iterator[Line]:
    places = dict.fromkeys(view.place(e.setup.span.path, e.setup.span.line, cell=e.setup.span.cell) for e in of)
    for place in places:
        yield ((place, "path"),)
    yield from paragraph(
        prose(_as_seen(of[0].why, of[0].mentions, view)), view.width, first=(("  ", "plain"),), indent=4
    )
    for text in of[0].instead:
        yield from paragraph(prose(f"possible instead: {text}"), view.width, first=(("  ", "plain"),), indent=4)


def _terms(setup: Setup | None) -> tuple[object, ...]:
    if setup is None:
        return ()
    return tuple((t.placement, t.estimator, t.coefficient, t.active, t.score_weight, t.verdict) for t in setup.terms)


def diff_style(line: str) -> Style:
    if line.startswith(("---", "+++")):
        return "strong"
    return _DIFF_STYLES.get(line[:1], "plain")
