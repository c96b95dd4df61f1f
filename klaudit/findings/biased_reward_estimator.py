"""KLA104: k2, abs and their like as a reward."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.gradients import wrong_terms
from klaudit.findings.judging import Draft, Subject, judges
from klaudit.model import Term


@judges("biased-reward-estimator")
def judge(subject: Subject) -> Iterator[Draft]:
    return wrong_terms(subject, "reward", _is_meant)


def _is_meant(term: Term) -> bool:
    return term.verdict == "biased" and term.estimator != "k3"
