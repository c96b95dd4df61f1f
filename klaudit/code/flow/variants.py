"""What a formula is per choice of settings, and formulas that exclude each other by a setting."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from klaudit.code.conditions import (
    ALWAYS,
    Assignment,
    Condition,
    Constant,
    allowed,
    assignments,
    choosers,
    shown,
    subjects,
)
from klaudit.code.evaluation.classification import Classification
from klaudit.code.evaluation.classify import classify, with_limits
from klaudit.code.evaluation.dual import taken_parts
from klaudit.code.flow.terms import is_external
from klaudit.code.graph import Node, Op, reachable
from klaudit.code.result import Formula, Variant
from klaudit.code.roles import OLD, POLICY, REFERENCE

MAX_EVALUATED = 2_000  # nodes, over all choices of settings of one formula


def variants(node: Node, given: Condition, defaults: dict[str, Constant], *, limits: bool) -> tuple[Variant, ...]:
    """What the formula is, per choice of settings.  `limits`: also what clamps and exponentials do to its gradient."""
    if is_external(node):
        return (Variant("", Classification("unknown", "pathwise", 1.0), node=node),)
    if not node.is_pure:  # something unknown is part of the formula
        return (Variant("", Classification("unknown", "pathwise" if node.live else "none", 1.0), node=node),)
    inner = [condition for part in reachable([node]) if part.op is Op.CHOICE for condition in part.conditions]
    if not inner:
        what = classify(node, {})
        if what is None:
            return ()
        return (Variant("", with_limits(what, node, {}) if limits else what, node=node),)
    grouped: dict[tuple[object, ...], list[tuple[Assignment, Classification]]] = {}
    to_old: list[Assignment] = []  # with these it is a KL to the policy of the rollout
    known: dict[frozenset[Node] | None, Classification | None] = {None: None}
    for assignment in assignments(inner, given):
        taken = taken_parts(node, assignment)
        if taken not in known:
            if sum(map(len, filter(None, known))) > MAX_EVALUATED:
                break
            known[taken] = classify(node, assignment) if _compares(taken or ()) else None
        what = known[taken]
        if _holds_to_old(taken or ()):
            to_old.append(assignment)
        if what is not None:
            grouped.setdefault(_kind(what), []).append((assignment, what))
    everything = [*to_old, *(assignment for group in grouped.values() for assignment, _ in group)]
    variants = []
    for group in grouped.values():
        chosen = [assignment for assignment, _ in group]
        default = len(grouped) > 1 and any(_is_default(assignment, defaults) for assignment in chosen)
        what = with_limits(group[0][1], node, chosen[0]) if limits else group[0][1]
        values = tuple((text, frozenset(assignment[text] for assignment in chosen)) for text in chosen[0])
        when = _when(chosen, everything)
        variants.append(Variant(when, what, default, node=node, assignment=tuple(chosen[0].items()), values=values))
    return tuple(variants)


def _compares(parts: Iterable[Node]) -> bool:
    """Both sides are still there once the settings have chosen."""
    roles = 0
    for part in parts:
        roles |= part.roles if part.op is Op.ATOM else 0
    return bool(roles & REFERENCE) and bool(roles & (POLICY | OLD))


def _holds_to_old(parts: Iterable[Node]) -> bool:
    roles = {part.roles for part in parts if part.op is Op.ATOM}
    return roles == {POLICY, OLD}


def _kind(what: Classification) -> tuple[object, ...]:
    return (
        *(what.estimator, what.gradient, what.scale > 0, what.ratio),
        *(what.direction, what.truncated, what.probability_weighted, what.only_where),
    )


def _is_default(assignment: Assignment, defaults: dict[str, Constant]) -> bool:
    """The assignment agrees with every default that is known, and at least one is."""
    known = [text for text in assignment if text in defaults]
    return bool(known) and all(assignment[text] == defaults[text] for text in known)


def _when(chosen: list[Assignment], everything: list[Assignment]) -> str:
    parts = []
    for text in chosen[0]:
        here = {assignment[text] for assignment in chosen}
        if here != {assignment[text] for assignment in everything}:
            parts.append(f"{text} = {_values(here)}")
    return ", ".join(parts)


def with_choosers(made: list[tuple[Condition, Formula]], defaults: dict[str, Constant]) -> list[Formula]:
    """Formulas that exclude each other are alternatives; note the settings that choose, and which one the defaults choose."""
    result: list[Formula] = []
    for at, (condition, formula) in enumerate(made):
        deciding: set[str] = set()
        for other_at, (other, other_formula) in enumerate(made):
            if (
                at != other_at
                and formula.placement == other_formula.placement
                and condition != ALWAYS
                and other != ALWAYS
            ):
                deciding |= choosers(condition, other)
        if deciding:
            formula = _chosen(formula, condition, deciding, defaults)
        result.append(formula)
    return _merged(result)


def _chosen(formula: Formula, condition: Condition, deciding: set[str], defaults: dict[str, Constant]) -> Formula:
    known = {text: value for text, value in defaults.items() if text in deciding}
    by_default = bool(known) and condition.holds(known) is True
    possible = allowed(condition, subjects((condition,)))

    def when(variant: Variant) -> str:
        outer = [f"{text} = {_values(possible[text])}" for text in sorted(deciding) if f"{text} = " not in variant.when]
        return ", ".join(filter(None, (*outer, variant.when)))

    variants = tuple(
        replace(
            variant,
            when=when(variant),
            values=(*((text, frozenset(possible[text])) for text in sorted(deciding)), *variant.values),
            is_default=by_default and (variant.is_default or not variant.when),
        )
        for variant in formula.variants
    )
    if formula.call is not None:  # a helper that several settings lead through: the call is what the reader looks at
        formula = replace(formula, span=formula.call[0], text=formula.call[1])
    return replace(formula, chosen_by=tuple(sorted(deciding)), variants=variants)


def _values(values: set[Constant]) -> str:
    return " or ".join(sorted(map(shown, values)))


def _merged(found: list[Formula]) -> list[Formula]:
    """Alternatives that one expression leads to (a call with the estimator as a setting) as one formula with variants."""
    merged: dict[object, Formula] = {}
    for at, formula in enumerate(found):
        key: object = (
            (
                formula.span,
                formula.placement,
                formula.sink,
                formula.knobs,
                formula.factor > 0,
                formula.detached,
                formula.through_unknown,
                formula.external,
            )
            if formula.chosen_by
            else at
        )
        if key in merged:
            first = merged[key]
            settings = tuple(sorted({*first.chosen_by, *formula.chosen_by}))
            formula = replace(first, variants=first.variants + formula.variants, chosen_by=settings)
        merged[key] = formula
    return list(merged.values())
