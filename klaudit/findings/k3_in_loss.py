"""KLA101: autograd through k3 descends KL(ref||pi)."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.gradients import wrong_terms
from klaudit.findings.judging import Draft, Subject, judges
from klaudit.model import Term


@judges("k3-in-loss")
def judge(subject: Subject) -> Iterator[Draft]:
    return wrong_terms(subject, "loss", _is_meant)


def _is_meant(term: Term) -> bool:
    return term.estimator == "k3" and term.gradient == "pathwise" and term.verdict == "biased"
