"""What is not known never counts as one: not before an addend, not on the way to the sink, not as the other of two values."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import findings_of, only, result_of, rules_of, used

LOSS = """
import torch
def policy_loss(log_prob, ref_log_prob, advantages, mask, weights, other, cap, cond, config):
    pg_loss = -(advantages * log_prob).mean()
    d = log_prob - ref_log_prob
    kl = {kl}
    return pg_loss + config.kl_coef * (kl * mask).sum()
"""

TORN = [
    "weights * torch.exp(-d) + d - 1",
    "d + weights * torch.exp(-d) - 1",
    "torch.exp(-d) + weights * d - 1",
    "weights.detach() * torch.exp(-d) + d - 1",
    "weights * torch.expm1(-d) + d",
    "torch.exp(-d) / other + d - 1",
    "torch.exp(-d) / other(mask) + d - 1",
    "other.scale * torch.exp(-d) + d - 1",
    "other[0] * torch.exp(-d) + d - 1",
    "(weights * torch.exp(-d)).mean() + d.mean() - 1",
    "torch.exp(-weights * d) + d - 1",
    "(torch.exp(-d) if cond else weights) * weights + d - 1",
    "torch.minimum(torch.exp(-d), other) + d - 1",
    "torch.where(cond, torch.exp(-d), other) + d - 1",
    "weights @ torch.exp(-d) + d - 1",
    "weights * torch.exp(-d) - torch.log(weights * torch.exp(-d)) - 1",
    "config.alpha * torch.exp(-d) + d - 1",
    "torch.exp(-d) + config.alpha * d - 1",
    "torch.exp(-config.alpha * d) + config.alpha * d - 1",
    "torch.where(cond, torch.exp(-d) + d - 1, d)",
    "torch.maximum(d, other)",
    "torch.exp(d.mean()) * torch.exp(-d) + d - 1",
    "d / d.mean().detach()",
]


@pytest.mark.parametrize("kl", TORN)
def test_a_formula_with_something_unknown_in_it_is_unknown(kl: str) -> None:
    code = LOSS.format(kl=kl)
    assert rules_of(code) == []
    assert {formula.what.estimator for formula in used(code)} <= {"unknown"}


@pytest.mark.parametrize("kl", TORN[:16])
def test_it_is_told_of_all_the_same(kl: str) -> None:
    (setup,) = setups(result_of(LOSS.format(kl=kl)))
    assert [(term.placement, term.estimator, term.verdict) for term in setup.terms] == [("loss", "unknown", "unknown")]


WHOLE = [
    "weights * (torch.exp(-d) + d - 1)",
    "weights * torch.exp(-d) + weights * d - weights",
    "(torch.exp(-d) + d - 1) * weights",
    "-(1 - torch.exp(-d) - d) * weights",
    "torch.lerp(-d, torch.exp(-d) - 1, weights) + d",
]


@pytest.mark.parametrize("kl", WHOLE)
def test_a_factor_before_the_whole_is_a_coefficient_that_is_not_known(kl: str) -> None:
    code = LOSS.format(kl=kl)
    formula = only(code)
    assert (formula.what.estimator, formula.coefficient(formula.what)) == ("k3", None)
    assert [knob.name for knob in formula.knobs] == ["config.kl_coef", "weights"]
    (setup,) = setups(result_of(code))
    assert (setup.terms[0].active, setup.terms[0].coefficient) == (None, None)
    assert {finding.confidence for finding in findings_of(code)} == {"medium"}


KNOWN = [
    ("torch.exp(-d) + d - 1", "k3"),
    ("torch.exp(torch.clamp(-d, -cap, cap)) - torch.clamp(-d, -cap, cap) - 1", "k3"),
    ("torch.where(cond, torch.exp(-d) + d - 1, 0.0)", "k3"),
    ("torch.where(cond, d, d)", "k1"),
    ("(torch.exp(-d) + d - 1) * (mask / mask.sum())", "k3"),
    ("(torch.exp(-d) + d - 1).sum(-1) / mask.sum(-1)", "k3"),
    ("torch.exp(-d.sum(-1)) + d.sum(-1) - 1", "k3"),
    ("torch.exp(-d.mean()) + d.mean() - 1", "unknown"),
]


@pytest.mark.parametrize(("kl", "estimator"), KNOWN)
def test_masks_lengths_and_bounds_leave_the_coefficient_alone(kl: str, estimator: str) -> None:
    formula = only(LOSS.format(kl=kl))
    assert (formula.what.estimator, [knob.name for knob in formula.knobs]) == (estimator, ["config.kl_coef"])


def test_terms_that_are_something_each_stay_terms() -> None:
    found = used(LOSS.format(kl="(1 - weights) * d + weights * (torch.exp(-d) + d - 1)"))
    assert sorted(formula.what.estimator for formula in found) == ["k1", "k3"]
    assert all(formula.coefficient(formula.what) is None for formula in found)


def test_the_policy_gradient_beside_a_penalty_is_no_part_of_it() -> None:
    code = """
    import torch
    def policy_loss(log_prob, ref_log_prob, advantages, beta):
        d = log_prob - ref_log_prob
        return -(torch.exp(d) * advantages).mean() + beta * d.mean()
    """
    assert only(code).what.estimator == "k1"


ON_THE_WAY = """
import torch
def train(self, run, log_prob, ref_log_prob, surrogate, strength, scale, mask):
    d = ref_log_prob - log_prob
    kl = d.exp() - d - 1
    loss = -(surrogate - {weighed})
    {scaled}
    loss.backward()
"""


@pytest.mark.parametrize("name", ["strength", "run.hyperparams.kl_penalty_strength", "run.parts['strength']"])
def test_an_unknown_name_on_the_way_stays_a_symbol(name: str) -> None:
    formula = only(ON_THE_WAY.format(weighed=f"{name} * kl", scaled=""))
    assert ([knob.name for knob in formula.knobs], formula.coefficient(formula.what)) == ([name], None)
    (setup,) = setups(result_of(ON_THE_WAY.format(weighed=f"{name} * kl", scaled="")))
    assert setup.terms[0].active is None


@pytest.mark.parametrize(
    "scaled", ["loss = loss * run.share", "loss = (loss * mask).sum() / run.tokens", "loss *= run.world"]
)
def test_what_scales_the_whole_loss_is_no_coefficient(scaled: str) -> None:
    formula = only(ON_THE_WAY.format(weighed="0.1 * kl", scaled=scaled))
    assert formula.coefficient(formula.what) == pytest.approx(0.1)


def test_a_penalty_towards_the_old_policy_is_the_rest_of_a_loss_too() -> None:
    code = """
    def policy_loss(logp, old_logp, ref_logp, weights):
        drift = (logp - old_logp) ** 2
        return weights * (0.1 * (logp - ref_logp) ** 2 + 0.01 * drift)
    """
    formula = only(code)
    assert formula.coefficient(formula.what) == pytest.approx(0.2)


def test_a_kl_of_a_library_in_a_scaled_loss_is_told_of() -> None:
    code = """
    from verl.trainer.ppo.core_algos import kl_penalty
    class Actor:
        def update(self, batch, log_prob, ref_log_prob, mask):
            scale = mask.shape[0] / self.config.mini if self.config.dynamic else 1 / self.accumulation
            loss = self.surrogate(log_prob)
            kld = kl_penalty(logprob=log_prob, ref_logprob=ref_log_prob, kl_penalty=self.config.kl_loss_type)
            loss = loss + kld.mean() * self.config.kl_loss_coef
            loss = loss * scale
            loss.backward()
    """
    assert only(code).external.endswith("kl_penalty")
    (setup,) = setups(result_of(code))
    assert setup.terms[0].estimator == "unknown"


SEQUENCE = """
import torch
def policy_loss(surrogate, logp, ref_logp, mask, level, beta):
    d = logp - ref_logp.detach()
    if level == "token":
        weights = d
    elif level == "sequence":
        weights = ((d * mask).sum(1) / mask.sum(1)).unsqueeze(1)
    else:
        weights = torch.zeros_like(d)
    kl = torch.exp(weights) * torch.exp(-d) + d - 1
    return surrogate + beta * kl
"""


def test_a_mean_over_tokens_is_no_token() -> None:
    variants = only(SEQUENCE).variants
    assert {variant.when.rpartition("= ")[2]: variant.what.estimator for variant in variants} == {
        "token": "k1",
        "sequence": "unknown",
        "anything else": "k3",
    }


WEIGHTED = """
import torch

def loss_fn(policy, ref, batch, token_values, beta, advantages, model):
    logps = policy(batch).log_softmax(-1).gather(-1, batch["ids"])
    with torch.no_grad():
        ref_logps = ref(batch).log_softmax(-1).gather(-1, batch["ids"])
    pg = -(advantages * torch.exp(logps - logps.detach())).mean()
    d = logps - ref_logps
    loss = pg + beta * ({weight} * ({formula})).mean()
    loss.backward()
"""


@pytest.mark.parametrize("weight", ["token_values", "model.ratio(batch)", "batch['ratio']"])
@pytest.mark.parametrize("formula", ["d", "torch.exp(-d) + d - 1", "d ** 2 / 2"])
def test_what_may_carry_a_gradient_leaves_the_score_weight_open(weight: str, formula: str) -> None:
    """Multiplied by an attached ratio k1 would be unbiased: nobody can say what these descend."""
    code = WEIGHTED.format(weight=weight, formula=formula)
    assert not {"KLA101", "KLA103", "KLA105", "KLA106"} & set(rules_of(code))
    (setup,) = setups(result_of(code))
    assert (setup.verdict, setup.score_weight) == ("unknown", "unknown")
