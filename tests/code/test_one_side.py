"""A clamp at d = 0 leaves half of an estimator: what is no KL must not be called one."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import result_of, rules_of

REWARD = """
import torch
def shaped_rewards(rewards, logp, ref_logp, beta):
    return rewards - beta * {kl}
"""
LOSS = """
import torch
def policy_loss(pg, logp, ref_logp, beta):
    return pg.mean() + beta * {kl}.mean()
"""
HALVES = [
    "torch.clamp(logp - ref_logp, min=0.0)",
    "(logp - ref_logp).clamp(0, 10)",
    "torch.relu(logp - ref_logp)",
    "torch.maximum(logp - ref_logp, torch.tensor(0.0))",
    "torch.clamp(logp - ref_logp, max=0)",
]


@pytest.mark.parametrize("kl", HALVES)
def test_half_of_k1_is_biased_in_the_reward(kl: str) -> None:
    code = REWARD.format(kl=kl)
    assert rules_of(code) == ["KLA104"]
    (setup,) = setups(result_of(code))
    assert (setup.verdict, setup.terms[0].verdict) == ("biased", "biased")


@pytest.mark.parametrize("kl", HALVES)
def test_half_of_k1_is_biased_in_the_loss(kl: str) -> None:
    assert rules_of(LOSS.format(kl=kl)) == ["KLA105"]


NEAR = [
    ("torch.clamp(logp - ref_logp, max=0.5)", "d < 0.5"),
    ("(logp - ref_logp).clamp_min(-1)", "d > -1"),
    ("torch.clamp(logp - ref_logp, -1, 1)", "-1 < d < 1"),
    ("torch.minimum(logp - ref_logp, torch.tensor(2.0))", "d < 2"),
]


@pytest.mark.parametrize(("kl", "live"), NEAR)
def test_a_clamp_near_the_reference_is_biased(kl: str, live: str) -> None:
    code = REWARD.format(kl=kl)
    assert rules_of(code) == ["KLA104"]
    (setup,) = setups(result_of(code))
    assert (setup.verdict, setup.terms[0].score_weight) == ("biased", f"d where {live}, constant elsewhere")
    assert rules_of(LOSS.format(kl=kl)) == ["KLA105"]


@pytest.mark.parametrize(
    "kl",
    [
        "torch.clamp(logp - ref_logp, -10, 10)",
        "torch.clamp(logp - ref_logp, max=10)",
        "(logp - ref_logp).mean().clamp(min=0)",  # the average estimates a KL, which is not negative
    ],
)
def test_bounds_far_from_the_reference_leave_the_estimator(kl: str) -> None:
    assert rules_of(REWARD.format(kl=kl)) == []


def test_k3_is_never_negative() -> None:
    kl = "(torch.exp(ref_logp - logp) - (ref_logp - logp) - 1).clamp(min=0)"
    assert "KLA101" in rules_of(LOSS.format(kl=kl))


def test_a_choice_with_half_of_k1_is_right_by_its_other_arm() -> None:
    code = """
    import torch
    def shaped_rewards(self, rewards, logp, ref_logp):
        if self.args.kind == "half":
            kl = torch.clamp(logp - ref_logp, min=0.0)
        else:
            kl = logp - ref_logp
        return rewards - self.beta * kl
    """
    assert rules_of(code) == []
