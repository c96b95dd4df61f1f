"""The set-ups that the configuration requires: whatever trains with something else is a finding (KLA401)."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, finding
from klaudit.gate.step import Gate, PathSettings, with_findings
from klaudit.model import Finding, Fix, Report, Setup
from klaudit.theory.naming import is_named, names_of

NAME = "required-setup"


def hold(report: Report, gate: Gate) -> Report:
    """Adds a finding for each set-up that is none of those required for its path."""
    settings = PathSettings(gate.options, gate.tree.root)
    if not settings.requires:
        return report
    return with_findings(report, _findings(report, settings), gate)


def _findings(report: Report, settings: PathSettings) -> Iterator[Finding]:
    told: set[tuple[object, ...]] = set()
    for setup in report.setups:
        required = settings.required(setup.path)
        if not required or not _trains(setup):
            continue
        answers = [is_named(setup, name) for name in required]
        if True in answers:
            continue
        draft = _draft(setup, required, is_known=None not in answers)
        if (draft.span, draft.message) not in told:  # one command may be started many times over
            told.add((draft.span, draft.message))
            yield finding(NAME, draft, setup.framework, launch=setup.span)


def _trains(setup: Setup) -> bool:
    """A function that only reports a KL is no set-up that anybody trains with."""
    return setup.kind != "code" or any(term.placement != "metric" for term in setup.terms)


def _draft(setup: Setup, required: tuple[str, ...], *, is_known: bool) -> Draft:
    wanted = " or ".join(required)
    what = " and ".join(names_of(setup)).replace("no-kl", "no KL penalty")
    when = f", where {', '.join(setup.assumes)}" if setup.assumes else ""
    message = f"trains with {what}{when}; required: {wanted}"
    if not is_known:
        message = f"cannot be known to train with {wanted}: it has {what}{when}"
    from klaudit.fixes.migration import TARGETS

    target = next((name for name in required if name in TARGETS), None)
    return Draft(
        setup.span,
        message,
        confidence="high" if is_known else "medium",
        related=tuple(each for term in setup.terms if term.active is not False for each in term.evidence),
        fix=Fix("none", f"`klaudit fix --target {target}` shows the change" if target is not None else ""),
        severity=None if is_known else "warning",
        key=":".join((setup.symbol, setup.entry_point, *setup.assumes)),
    )
