"""KLA102: k3 as a reward descends KL(pi||ref) - KL(ref||pi)."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.gradients import wrong_terms
from klaudit.findings.judging import Draft, Subject, judges
from klaudit.model import Term


@judges("k3-in-reward")
def judge(subject: Subject) -> Iterator[Draft]:
    return wrong_terms(subject, "reward", _is_meant, "; unbounded below, it can collapse the policy")


def _is_meant(term: Term) -> bool:
    return term.estimator == "k3"
