"""`klaudit explain path.py:LINE`: what a formula is and why it is taken for that, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from klaudit.code import charts
from klaudit.code.notation import written
from klaudit.code.result import CodeResult, Formula, Variant
from klaudit.code.rows import row_of
from klaudit.code.wording import amount, estimator, quoted, shown, weights
from klaudit.model import Span

_MOST_CONDITIONS = 160


Named: TypeAlias = Callable[[str], str]  # how a path of the tree is called where the text is read


def explain(result: CodeResult, line: int, named: Named = str) -> str:
    """The reasoning about every formula on a line of the file; what the file holds where there is none."""
    found = [formula for formula in result.formulas if _covers(formula, line, result.path)]
    if not found:
        return _nothing(result, line, named)
    return "\n\n".join(_explained(formula, named) for formula in found) + "\n"


def is_about(result: CodeResult, line: int) -> bool:
    """Whether a formula stands on a line, or passes it where it joins the loss or reward."""
    return any(_covers(formula, line, result.path) for formula in result.formulas)


def _covers(formula: Formula, line: int, path: str) -> bool:
    spans: list[Span | None] = [formula.span, formula.home, formula.joined, formula.difference]
    return any(span is not None and span.path == path and span.line <= line <= span.end_line for span in spans)


def _nothing(result: CodeResult, line: int, named: Named) -> str:
    places = [f"  {named(result.path)}:{formula.span.line}  {quoted(formula)}" for formula in result.formulas]
    head = f"{named(result.path)}:{line}: no formula that compares log pi with log pi_ref"
    return "\n".join([head, *(["those of this file:", *places] if places else [])]) + "\n"


def _explained(formula: Formula, named: Named) -> str:
    lines = [f"{named(formula.span.path)}:{formula.span.line}  {quoted(formula)}"]
    if formula.home != formula.span:
        lines.append(f"  written at {named(formula.home.path)}:{formula.home.line}")
    lines += ["", f"in {formula.symbol or 'the top level'}: {_use(formula)}; confidence {formula.confidence}"]
    lines += ["", "whose log-probabilities:"]
    for atom in formula.atoms:
        lines.append(f"  {atom.role:<11} {shown(atom.text)}" + (f": {shown(atom.reason)}" if atom.reason else ""))
    for variant in formula.variants:
        lines += ["", *_variant(formula, variant)]
    lines += ["", "the way to where it is used:", *_way(formula, named)]
    return "\n".join(lines)


def _use(formula: Formula) -> str:
    places = {
        "loss": "part of a loss",
        "reward": "part of a reward",
        "metric": "only reported",
        "unknown": "not seen to be used",
    }
    text = f"{places[formula.placement]} ({formula.sink_kind})"
    if formula.placement in ("loss", "reward"):
        sign = "added with" if formula.sign(formula.what) > 0 else "subtracted with"
        text += f", {sign} coefficient {amount(formula, formula.what) or '1'}"
        if formula.has_wrong_sign(formula.what):
            text += ": the wrong sign (a penalty is added to a loss and subtracted from a reward)"
    if formula.detached:
        text += ", without gradient"
    if formula.condition and len(formula.condition) <= _MOST_CONDITIONS:
        text += f", when {shown(formula.condition)}"
    return text


def _variant(formula: Formula, variant: Variant) -> list[str]:
    what = variant.what
    if formula.external:
        return [f"computed by {shown(formula.external)}(), whose code is not in the tree: nothing is known of its form"]
    head = f"when {shown(variant.when)}" if variant.when else "the formula"
    lines = [f"{head}:" + (" (the default)" if variant.is_default else "")]
    if variant.node is not None:
        lines.append(f"  {shown(written(variant.node, dict(variant.assignment)))}")
    lines.append(f"  is {estimator(what)}" + (f" * {what.scale:g}" if what.scale != 1 else ""))
    if formula.placement != "metric":
        lines.append(f"  {weights(formula, what)}")
        row = row_of(formula, what)
        lines.append(f"  verdict: {row.verdict}" + (f" ({row.note})" if row.note else ""))
    if what.limits.live is not None:
        beyond = "no gradient" if formula.placement == "loss" else "constant"
        lines.append(f"  a clamp is in force outside {what.limits.range_text}: {beyond} there")
    if what.ratio != "none":
        lines.append(f"  weighted by pi/pi_old ({what.ratio})")
    samples = what.samples
    if formula.placement == "reward":  # a rewarded value is its own score weight
        samples = tuple((d, value, value) for d, value, _ in samples)
    if samples:
        lines += ["", *(f"  {row}" for row in charts.table(samples)), "", *(f"  {row}" for row in charts.plot(samples))]
    return lines


def _way(formula: Formula, named: Named) -> list[str]:
    steps = dict.fromkeys(f"{named(span.path)}:{span.line}" for span in (*formula.path, formula.sink))
    return [f"  {step}" for step in steps]
