"""What a trainer does with its settings: the KL terms, what it refuses, and the recipes that change them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from documentation.conditions import name_of, value, when
from documentation.markdown import code, prose, table
from klaudit.frameworks.rules import Case, CoefficientChoice, EstimatorChoice, Recipe, TermRule, Trainer


def terms(trainer: Trainer) -> str:
    """A table for every term, then what befalls it."""
    return "\n".join(part for term in trainer.terms for part in _term(term, trainer))


def faults(trainer: Trainer) -> str:
    rows = [
        (
            f"[{fault.rule}](../rules/{fault.rule}.md)",
            name_of(fault.setting, trainer) if fault.setting else "",
            when(fault.when, fault.versions, trainer),
            prose(fault.why) + (f" ({code(fault.raises)})" if fault.raises else ""),
            prose(fault.instead),
            prose(fault.source),
        )
        for fault in trainer.faults
    ]
    stale = [
        (
            "[KLA107](../rules/KLA107.md)",
            "",
            when(case.when, case.versions, trainer),
            prose(case.why),
            "",
            prose(case.source),
        )
        for case in trainer.stale
    ]
    return table(("rule", "setting", "when", "what happens", "instead", "source"), [*rows, *stale])


def recipes(trainer: Trainer) -> str:
    rows = (
        (
            code(recipe.target),
            when(recipe.when, recipe.versions, trainer),
            prose(f"impossible: {recipe.impossible}") if recipe.impossible else _changes(recipe, trainer),
            prose(recipe.explanation),
        )
        for recipe in trainer.recipes
    )
    return table(("target", "when", "change", "mind"), rows)


def _changes(recipe: Recipe, trainer: Trainer) -> str:
    parts = [f"{name_of(name, trainer)} = {value(wanted)}" for name, wanted in recipe.set.items()]
    if recipe.coefficient:
        parts.append(f"the coefficient moves to {name_of(recipe.coefficient, trainer)}")
    if recipe.remove:
        parts.append(f"remove {', '.join(name_of(name, trainer) for name in recipe.remove)}")
    if recipe.group_std:
        against = ", ".join(f"{name_of(name, trainer)} = {value(wanted)}" for name, wanted in recipe.group_std.items())
        parts.append(f"outside group-std normalisation: {against}")
    return "<br>".join(parts) + (" (unsafe)" if recipe.safety == "unsafe" else "")


def _term(term: TermRule, trainer: Trainer) -> Iterator[str]:
    yield f"**KL in the {term.placement}**" + (f", {on}" if (on := _on(term, trainer)) else "") + ".\n"
    rows = [("estimator", choice, told, source) for choice, told, source in _choices(term.estimator, trainer)]
    rows += [("coefficient", choice, told, source) for choice, told, source in _choices(term.coefficient, trainer)]
    rows += [
        ("gradient", prose(c.biased or c.gradient), when(c.when, c.versions, trainer), _because(c))
        for c in term.gradient
    ]
    for label, cases in _fates(term):
        rows += [
            (label, prose(case.why), when(case.when, case.versions, trainer), prose(case.source)) for case in cases
        ]
    if term.source:
        rows.append(("where", "", "", prose(term.source)))
    yield table(("of this term", "is", "when", "source"), rows)


def _on(term: TermRule, trainer: Trainer) -> str:
    told = when(term.when, term.versions, trainer)
    return f"on when {told}" if term.when else f"in {told}" if told else ""


def _choices(
    choices: Iterable[EstimatorChoice] | Iterable[CoefficientChoice], trainer: Trainer
) -> Iterator[tuple[str, str, str]]:
    for choice in choices:
        fixed = prose(str(choice.fixed)) if choice.fixed is not None else ""
        what = f"that of {name_of(choice.setting, trainer)}" if choice.setting else fixed
        scale = getattr(choice, "scale", 1.0)
        times = f", times {scale:g}" if scale != 1 else ""
        yield what + times, when(choice.when, choice.versions, trainer), _because(choice)


def _fates(term: TermRule) -> Iterator[tuple[str, Iterable[Case]]]:
    yield "ignored", term.ignored
    yield "raises", term.raises
    yield "inside group-std normalisation", term.group_std
    yield "averaged over the length", term.length_averaged
    yield "the reference model runs at coefficient 0", term.reference_at_zero
    yield "besides", term.facts


def _because(case: Case) -> str:
    return "; ".join(filter(None, (prose(case.why), prose(case.source))))
