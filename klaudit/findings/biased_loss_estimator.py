"""KLA105: biased forms in the loss other than plain k3."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.gradients import wrong_terms
from klaudit.findings.judging import Draft, Subject, judges
from klaudit.model import Term


@judges("biased-loss-estimator")
def judge(subject: Subject) -> Iterator[Draft]:
    return wrong_terms(subject, "loss", _is_meant, blames_estimator=True)


def _is_meant(term: Term) -> bool:
    return term.verdict == "biased" and (term.estimator, term.gradient) != ("k3", "pathwise")
