"""The sign of a penalty: that of the sum it joins and of the number that its coefficient is, wherever the number stands."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import findings_of, only, result_of, rules_of

K3 = "(ref_logp - logp).exp() - (ref_logp - logp) - 1"

NUMBERS = {
    "of the module": "BETA = {number}\ndef compute_loss(pg, logp, ref_logp):\n    return pg {sign} BETA * ({k}).mean()\n",
    "a default": "def compute_loss(pg, logp, ref_logp, beta={number}):\n    return pg {sign} beta * ({k}).mean()\n",
    "a default by keyword": (
        "def compute_loss(pg, logp, ref_logp, *, kl_coef={number}):\n    return pg {sign} kl_coef * ({k}).mean()\n"
    ),
    "of an object": (
        "class T:\n    def __init__(self):\n        self.beta = {number}\n"
        "    def compute_loss(self, pg, logp, ref_logp):\n        return pg {sign} self.beta * ({k}).mean()\n"
    ),
    "of a class": (
        "class T:\n    beta = {number}\n"
        "    def compute_loss(self, pg, logp, ref_logp):\n        return pg {sign} self.beta * ({k}).mean()\n"
    ),
    "of an object's parameter": (
        "class T:\n    def __init__(self, kl_coef={number}):\n        self.kl_coef = kl_coef\n"
        "    def compute_loss(self, pg, logp, ref_logp):\n        return pg {sign} self.kl_coef * ({k}).mean()\n"
    ),
    "in place": "def compute_loss(pg, logp, ref_logp):\n    beta = {number}\n    return pg {sign} beta * ({k}).mean()\n",
}


@pytest.mark.parametrize("number", [0.1, -0.1])
@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize("where", NUMBERS)
def test_a_number_by_name_keeps_its_sign(where: str, sign: str, number: float) -> None:
    code = NUMBERS[where].format(number=number, sign=sign, k=K3)
    coefficient = number if sign == "+" else -number
    (setup,) = setups(result_of(code))
    assert setup.terms[0].coefficient == coefficient
    assert rules_of(code) == (["KLA101", "KLA301"] if coefficient < 0 else ["KLA101"])


@pytest.mark.parametrize("number", [0.1, -0.1])
def test_a_launch_gives_a_number_of_its_own(number: float) -> None:
    """What the code does to it does not hang on the default."""
    formula = only(NUMBERS["a default"].format(number=number, sign="+", k=K3))
    assert not formula.is_turned(formula.what)
    formula = only(NUMBERS["a default"].format(number=number, sign="-", k=K3))
    assert formula.is_turned(formula.what)


def test_the_direction_is_told_once() -> None:
    code = NUMBERS["in place"].format(number=0.1, sign="-", k=K3)
    told = {finding.rule: finding.message for finding in findings_of(code)}
    assert told["KLA301"].endswith("is subtracted from the loss, which ascends KL(ref||pi)")
    assert "with its sign turned right, score weight w(d) = 1 - exp(-d), descends KL(ref||pi)" in told["KLA101"]


@pytest.mark.parametrize("penalty", ["(logp - ref_logp)", "-(ref_logp - logp)", "1.0 * (logp - ref_logp)"])
def test_k1_in_the_loss_regularises_nothing_with_either_sign(penalty: str) -> None:
    """Its expected gradient is zero on-policy: nothing drives the policy anywhere."""
    code = f"def compute_loss(pg, logp, ref_logp, beta):\n    return (pg - beta * {penalty}).mean()\n"
    (finding,) = findings_of(code)
    assert finding.rule == "KLA103"
    assert "nothing on-policy; off-policy KL(pi_old||pi)" in finding.message


def test_k1_added_to_a_reward_drives_away() -> None:
    code = "def shape(scores, logp, ref_logp, beta):\n    rewards = scores + beta * (logp - ref_logp)\n    return rewards\n"
    assert "KLA301" in rules_of(code)


@pytest.mark.parametrize("join", ["adv - beta * kl", "adv + -beta * kl"])
def test_a_reward_with_a_gradient_of_its_own_is_not_called_unbiased(join: str) -> None:
    code = f"""
        def loss(logp, old_logp, ref_logp, adv, beta=0.01):
            kl = logp - ref_logp
            reward = {join}
            return -((logp - old_logp).exp() * (reward - reward.mean())).mean()
    """
    assert "KLA304" in rules_of(code)
    (setup,) = setups(result_of(code))
    assert (setup.terms[0].placement, setup.terms[0].verdict, setup.verdict) == ("reward", "unknown", "unknown")


@pytest.mark.parametrize(
    "total", ["(per_token * mask).sum(1).mean() / self.n", "per_token.sum() / self.n", "(per_token / self.n).sum()"]
)
def test_what_divides_the_whole_loss_is_no_coefficient(total: str) -> None:
    code = f"""
        class Trainer:
            def __init__(self, beta=0.04, n=512):
                self.beta, self.n = beta, n
            def loss(self, logp, old_logp, ref_logp, adv, mask):
                per_token = -((logp - old_logp).exp() * adv) + self.beta * ({K3})
                return {total}
    """
    formula = only(code)
    assert formula.coefficient(formula.what) == 0.04


@pytest.mark.parametrize(
    "mask", ["jnp.not_equal(ids, pad)", "torch.ne(ids, pad)", "ids.eq(pad)", "jnp.logical_not(done)"]
)
def test_a_comparison_by_a_function_is_a_mask(mask: str) -> None:
    code = f"""
        import torch
        import jax.numpy as jnp
        def shape(rewards, ids, pad, done, old_logps, ref_logps, beta=0.1):
            kept = {mask}
            kl = (old_logps - ref_logps) * kept
            rewards = rewards - beta * kl
            return rewards
    """
    formula = only(code)
    assert [knob.name for knob in formula.knobs] == ["beta"]
    assert setups(result_of(code))[0].terms[0].active is True


@pytest.mark.parametrize(
    ("coefficient", "active"), [("0.1", True), ("beta", None), ("self.beta", None), ("0.0", False)]
)
def test_a_coefficient_of_no_known_number_may_be_zero(coefficient: str, active: bool | None) -> None:
    code = f"def compute_loss(self, pg, logp, ref_logp, beta, n):\n    return pg + {coefficient} * ({K3}).mean()\n"
    terms = [term for setup in setups(result_of(code)) for term in setup.terms]
    assert [term.active for term in terms] == ([] if active is False else [active])
