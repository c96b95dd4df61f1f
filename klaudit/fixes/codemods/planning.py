"""The findings of one file on hand-written formulas -> rewrites that are proven one after another, and the reasons where there are none."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import TypeAlias

from klaudit.code.judge import setups
from klaudit.code.result import CodeResult, Formula
from klaudit.fixes.codemods.layers import Layers
from klaudit.fixes.codemods.proof import Judged, Load, Proven, judged, prove
from klaudit.fixes.codemods.proposal import CannotMendError, Case, Proposal
from klaudit.fixes.codemods.registry import is_of_loss, proposals, rank
from klaudit.fixes.codemods.text import Code
from klaudit.fixes.edits import apply
from klaudit.fixes.migration import Migration, Request, Unchanged
from klaudit.fixes.page import CannotEditError
from klaudit.model import Edit, Finding, Setup
from klaudit.readers.source import Source, UnreadableError

# Why a finding about a set-up is left alone, in the text as it is by now; empty where nothing excuses it.
Excuse: TypeAlias = Callable[[Finding, Setup, Source], str]

_MOST_ROUNDS = 120
_IN_LOSS = "k2-in-loss"


@dataclass(frozen=True, slots=True)
class Step:
    """One finding mended: what it was about, what was done, and the formula that came of it."""

    case: Case
    proposal: Proposal
    before: Judged
    after: Proven
    mended: frozenset[str]
    content: bytes


@dataclass(slots=True)
class Rewritten:
    """A file with its formulas mended; `unchanged` are the others."""

    migrations: list[Migration] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    content: bytes | None = None


def _no_excuse(finding: Finding, setup: Setup, source: Source) -> str:
    return ""


def rewrite(
    source: Source, load: Load, request: Request, is_selected: Callable[[Finding], bool], excuse: Excuse = _no_excuse
) -> Rewritten:
    """All that can be mended in a file, and is not excused.  Raises UnreadableError where it is not Python."""
    layers = Layers(source.path, source.data)
    steps: list[Step] = []
    reasons: dict[tuple[str, int], str] = {}
    excused: set[tuple[str, int]] = set()
    state = judged(source, load)
    first = state
    settled = 0
    for _ in range(_MOST_ROUNDS):
        waiting = []
        for place, case in _numbered(state):
            if place in reasons or not is_selected(case.finding) or _is_own(case, steps, request):
                continue
            why = excuse(case.finding, alone(state, case.formula), Source(source.path, layers.data))
            if why:
                reasons[place] = why
                excused.add(place)
            else:
                waiting.append((place, case))
        if not waiting and len(steps) == settled:
            break
        if not waiting:  # what was in the way of one rewrite may have been another's business
            settled = len(steps)
            reasons = {place: why for place, why in reasons.items() if place in excused}
            continue
        place, case = min(waiting, key=lambda each: rank(each[1].finding.name))
        made = mend(Source(source.path, layers.data), case, state, load, request.target)
        if isinstance(made, str):
            reasons[place] = made
            continue
        layers.add(made.proposal.edits)
        if layers.data != made.content:
            raise RuntimeError("edits made one after another give another text than was proven")
        steps.append(made)
        state = made.after.state
    return _told(first, state, layers, steps, reasons, excused, request, is_selected, source, load)


def _is_own(case: Case, steps: list[Step], request: Request) -> bool:
    """A remark on what was asked for, or made for want of something better."""
    made = {step.after.formula.symbol for step in steps if step.proposal.target == _IN_LOSS}
    return case.finding.name == "token-level-only" and (request.target == _IN_LOSS or case.formula.symbol in made)


def mend(source: Source, case: Case, state: Judged, load: Load, target: str) -> Step | str:
    """The first proposal that is proven, or why there is none."""
    why = ""
    try:
        for proposal in proposals(Code(source), case, target):
            data = apply(source.data, proposal.edits)
            try:
                proven = prove(state, case, proposal.promise, Source(source.path, data), load)
            except CannotMendError as error:
                why = why or str(error)
                continue
            gone = case.beside - _rules(proven.state, proven.formula)
            return Step(case, proposal, state, proven, gone | {case.finding.rule}, data)
    except (CannotMendError, CannotEditError) as error:
        return why or str(error)
    except (UnreadableError, UnicodeError) as error:
        return f"its text cannot be edited: {error}"
    except RecursionError:
        return "its expressions are nested too deeply to be followed"
    return why or "no way to rewrite it is known"


def _numbered(state: Judged) -> list[tuple[tuple[str, int], Case]]:
    """Findings by what they say of which function, and which of its kind: stable while others are mended."""
    seen: dict[str, int] = {}
    numbered = []
    for case in state.cases:
        mark = case.finding.fingerprint
        seen[mark] = seen.get(mark, -1) + 1
        numbered.append(((mark, seen[mark]), case))
    return numbered


def _rules(state: Judged, formula: Formula) -> frozenset[str]:
    return frozenset(case.finding.rule for case in state.cases if case.formula is formula)


# --- telling ---------------------------------------------------------------------------------------------------------------------


def _told(
    first: Judged,
    last: Judged,
    layers: Layers,
    steps: list[Step],
    reasons: dict[tuple[str, int], str],
    excused: Container[tuple[str, int]],
    request: Request,
    is_selected: Callable[[Finding], bool],
    source: Source,
    load: Load,
) -> Rewritten:
    told = Rewritten()
    for group in layers.together():
        migration = _migration([steps[at] for at in sorted(group)], layers.edits(group))
        if request.unsafe:
            told.migrations.append(migration)
        else:
            why = "the change rewrites code and is not safe: --unsafe makes it"
            told.unchanged.append(Unchanged(migration.before, migration.rules, why, (migration.title,)))
    if told.migrations:
        told.content = layers.data
    state, content = (last, layers.data) if request.unsafe else (first, source.data)
    by_reason: dict[tuple[int, str], tuple[Case, list[str]]] = {}
    for place, case in _numbered(state):
        if place in reasons and is_selected(case.finding):
            why = reasons[place]
            if place not in excused:
                why += f". By hand: {case.finding.fix.title}"
            by_reason.setdefault((id(case.formula), why), (case, []))[1].append(case.finding.rule)
    text = Source(source.path, content)
    excuses = {reasons[place] for place in reasons if place in excused}
    for (_, why), (case, rules) in by_reason.items():
        instead = () if why in excuses else _instead(case, state, request, text, load)
        told.unchanged.append(Unchanged(alone(state, case.formula), tuple(dict.fromkeys(rules)), why, instead))
    return told


def _instead(case: Case, state: Judged, request: Request, source: Source, load: Load) -> tuple[str, ...]:
    """The other target that could be reached."""
    if request.target == _IN_LOSS or case.formula.placement != "loss" or not is_of_loss(case.finding.name):
        return ()
    made = mend(source, case, state, load, _IN_LOSS)
    return () if isinstance(made, str) else (f"--target {_IN_LOSS}: {made.proposal.title}, {made.proposal.notes[0]}",)


def _migration(steps: list[Step], edits: tuple[Edit, ...]) -> Migration:
    first, last = steps[0], steps[-1]
    rules = dict.fromkeys(rule for step in steps for rule in (step.case.finding.rule, *sorted(step.mended)))
    titles = "; ".join(dict.fromkeys(step.proposal.title for step in steps))
    return Migration(
        path=first.case.finding.span.path,
        at=-1,
        before=alone(first.before, first.case.formula),
        rules=tuple(rules),
        target=last.proposal.target,
        title=titles,
        explanation=titles,
        rescued=(),
        safety="unsafe",
        edits=edits,
        names=frozenset(),
        amount=first.case.formula.coefficient(first.case.formula.what),
        after=alone(last.after.state, last.after.formula),
        notes=tuple(dict.fromkeys(note for step in steps for note in step.proposal.notes)),
    )


def alone(state: Judged, formula: Formula) -> Setup:
    """The set-up of one formula."""
    return setups(CodeResult(state.result.path, (formula,)))[0]
