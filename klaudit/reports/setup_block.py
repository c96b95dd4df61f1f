"""Set-ups in full: what is trained with, term by term, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klaudit.model import Evidence, Setup, Term, Verdict
from klaudit.reports.layout import Cell, Line, Style, paragraph, table
from klaudit.reports.view import View
from klaudit.reports.visible import cells, visible
from klaudit.reports.wording import coefficient, is_step, prose, value, version_name, version_source, way, whence
from klaudit.theory import look_up

_HEADERS = ("placement", "estimator", "coefficient", "score weight w(d)", "descends", "verdict")
_SWITCHED_OFF = "switched off"  # the usual reason, which needs no words
_MOST_TOLD = 6  # of set-ups that are said to be the same


def setup_blocks(setups: Sequence[Setup], view: View) -> Iterator[Line]:
    """The set-ups of one file, those with the same terms together, told once: the one that assumes least."""
    groups: dict[object, list[Setup]] = {}
    for setup in setups:
        groups.setdefault(_sameness(setup), []).append(setup)
    for group in groups.values():
        told = min(group, key=lambda setup: len(setup.assumes))
        yield from _block(told, [setup for setup in group if setup is not told], view)
        yield ()


def verdict_style(verdict: Verdict) -> Style:
    if verdict in ("unbiased", "unbiased-per-token"):
        return "good"
    if verdict in ("inactive", "unknown"):
        return "faint"
    return "error" if verdict in ("no-regularisation", "no-gradient") else "warning"


def terms_in_brief(setup: Setup) -> str:
    """`k3 in loss, 0.001; k1 in reward, unknown (active?)`, without those that are switched off."""
    told = []
    for term in setup.terms:
        if term.active is not False:
            doubt = " (if active)" if term.active is None else ""
            told.append(f"{term.estimator} in {term.placement}, {coefficient(term)}{doubt}")
    return "; ".join(told) or "none"


def _block(setup: Setup, same: Sequence[Setup], view: View) -> Iterator[Line]:
    span = setup.span
    place: Line = (("set-up ", "strong"), (view.place(span.path, span.line, cell=span.cell), "path"), (" ", "plain"))
    yield from paragraph(_what(setup, view), view.width, first=place, indent=2)
    started_by = visible(setup.symbol if setup.kind == "code" and setup.symbol else setup.entry_point)
    if setup.kind == "config" and setup.entry_point == setup.path:
        started_by = ""  # the path stands before it
    algorithm = f"algorithm {visible(setup.algorithm)}" if setup.algorithm else ""
    if told := ", ".join(part for part in (started_by, algorithm) if part):
        yield from paragraph(told, view.width, first=(("  ", "plain"),), indent=4)
    if setup.assumes:
        yield from paragraph(f"if {_conditions(setup)}", view.width, first=(("  ", "plain"),), indent=4)
    if same:
        yield from paragraph(f"the same {_elsewhere(setup, same)}", view.width, first=(("  ", "plain"),), indent=4)
    yield from _terms(setup, view)


def _what(setup: Setup, view: View) -> str:
    if setup.kind == "code" and not setup.version.value:
        return version_name(setup)
    kind = {"launch": "a launch of", "config": "a configuration of", "code": "code for"}[setup.kind]
    return f"{kind} {version_name(setup)} ({version_source(setup.version, view)})"


def _conditions(setup: Setup) -> str:
    return prose(" and ".join(setup.assumes))


def _elsewhere(setup: Setup, same: Sequence[Setup]) -> str:
    """`at lines 12, 40; if $TP = 4`: where else in the file, and under which other conditions."""
    lines = dict.fromkeys(str(other.span.line) for other in same if other.span.line != setup.span.line)
    conditions = dict.fromkeys(f"if {_conditions(other)}" for other in same if other.assumes not in ((), setup.assumes))
    at = f"at line{'s' if len(lines) > 1 else ''} {_some(list(lines), ', ')}" if lines else ""
    return "; ".join(part for part in (at, _some(list(conditions), "; ")) if part) or "again"


def _some(told: Sequence[str], between: str) -> str:
    more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return between.join(told[:_MOST_TOLD]) + more


def _terms(setup: Setup, view: View) -> Iterator[Line]:
    if not setup.terms:
        yield (("  no KL term", "plain"),)
        return
    yield from table(_HEADERS, [_row(term) for term in setup.terms], view.width, indent=2)
    if sum(term.active is not False for term in setup.terms) > 1:
        first: Line = (("  in all: ", "plain"), (setup.verdict, verdict_style(setup.verdict)))
        yield from paragraph(f", w(d) = {visible(setup.score_weight)}", view.width, first=first, indent=4)
    yield from _provenance(setup, view)
    for remark in dict.fromkeys(remark for term in setup.terms for remark in _remarks(term, view)):
        yield from paragraph(prose(remark), view.width, first=(("  = ", "context"),), indent=6)


def _provenance(setup: Setup, view: View) -> Iterator[Line]:
    """`setting = value  where from`, the origins below each other where there is room for that."""
    evidence = _evidence(setup, view)
    if steps := [each for each in evidence if is_step(each)]:
        yield from paragraph(
            way(steps, view, here=setup.path), view.width, first=(("  by way of ", "faint"),), indent=4
        )
    told = [
        (f"{visible(each.setting)} = {value(each.value)}", whence(each, setup, view, here=setup.path))
        for each in evidence
        if not is_step(each)
    ]
    if told:
        yield (("  effective settings", "faint"),)
    widest = max((cells(shown) for shown, _ in told), default=0)
    for shown, origin in told:
        if widest + 30 <= view.width:
            yield from paragraph(
                origin,
                view.width,
                first=((f"    {shown}{' ' * (widest - cells(shown) + 2)}", "plain"),),
                indent=8,
                style="faint",
            )
        else:
            yield from paragraph(f"{shown}, {origin}", view.width, first=(("    ", "plain"),), indent=8)


def descends(term: Term) -> str:
    """What a term descends; empty for a variant that the table has no row for, which says what it does in its facts."""
    row = look_up(term.estimator, term.placement, term.gradient)
    return row.descends if row.weight_text == term.score_weight else ""


def _row(term: Term) -> list[Cell]:
    told = "-" if term.active is False else descends(term) or ("see below" if term.facts else "unknown")
    return [
        (term.placement, "plain"),
        (term.estimator, "plain"),
        (coefficient(term), "plain"),
        (visible(term.score_weight), "plain"),
        (told, "plain"),
        (term.verdict, verdict_style(term.verdict)),
    ]


def _remarks(term: Term, view: View) -> Iterator[str]:
    name = f"{term.estimator} in {term.placement}"
    if term.active is False:
        if term.why_inactive and (view.verbose or term.why_inactive != _SWITCHED_OFF):
            yield f"{name} is off: {term.why_inactive}"
        return
    if term.active is None:
        yield f"{name}: whether it is on cannot be known without running something"
    if term.normalised_by_group_std:
        yield f"{name} is divided by the group's standard deviation, which cancels its coefficient"
    yield from term.facts
    if view.verbose:
        yield from (each.note for each in term.evidence if is_step(each) and each.note)


def _evidence(setup: Setup, view: View) -> list[Evidence]:
    """What decides the terms; of those that are off only on request."""
    told: list[Evidence] = []
    for term in setup.terms:
        if view.verbose or term.active is not False:
            told += [each for each in term.evidence if each not in told]
    return told


def _sameness(setup: Setup) -> object:
    terms = tuple(
        (t.placement, t.estimator, t.gradient, t.coefficient, t.active, t.score_weight, t.verdict) for t in setup.terms
    )
    return (setup.framework, setup.version.value, setup.kind, setup.algorithm, setup.score_weight, terms)
