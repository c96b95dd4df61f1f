"""Rewards: what a function's name says of what it returns, branches before them, and the standard deviation that divides them."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import findings_of, only, result_of, rules_of, used

REPORTED = """
import torch
class Learner:
    def update_with_precomputed_advantages(self, logps, ref_logps, surrogate, beta):
        infos = {{}}
        d = ref_logps - logps
        reg_loss = beta * (torch.expm1(d) - d).mean()
        loss = surrogate.mean() + reg_loss
        loss.backward()
        {store}
        return {given}
"""


@pytest.mark.parametrize(
    ("store", "given"),
    [
        ("infos['reg_loss'] = reg_loss.detach()", "infos"),
        ("self.stats = {'reg_loss': reg_loss.detach()}", "self.stats"),
        ("infos['reg_loss'] = reg_loss", "infos"),
        ("pass", "{'reg_loss': reg_loss.detach()}"),
    ],
)
def test_a_report_is_no_reward(store: str, given: str) -> None:
    code = REPORTED.format(store=store, given=given)
    assert rules_of(code) == ["KLA101"]
    assert [formula.placement for formula in used(code)] == ["loss"]


def test_a_reward_in_a_dictionary_is_one() -> None:
    code = """
    def compute_rewards(scores, logp, ref_logp, beta):
        return {"scores": scores, "rewards": scores - beta * (logp - ref_logp)}
    """
    assert only(code).placement == "reward"


JOINED = """
class Trainer:
    def make_experience(self, tokens, scores):
        if self.shared:
            logprobs, values = self.model.policy_model(tokens, return_value=True)
        else:
            logprobs = self.model.policy_model(tokens)
        ref_logprobs = self.ref_model(tokens)
        logprobs = logprobs{method}
        ref_logprobs = ref_logprobs{method}
        rewards = self.config.kl_coef * (logprobs - ref_logprobs)
        rewards[-1] {operator} scores
        return self.store(rewards=rewards)
"""


@pytest.mark.parametrize("method", ["", ".asnumpy()", ".cpu().numpy()", ".moved_to_host()"])
@pytest.mark.parametrize("prefilter", [True, False])
def test_a_method_of_joined_branches_keeps_the_formula(method: str, prefilter: bool) -> None:
    (formula,) = result_of(JOINED.format(method=method, operator="+="), prefilter=prefilter).formulas
    assert (formula.placement, formula.what.estimator, formula.has_wrong_sign(formula.what)) == ("reward", "k1", True)
    assert rules_of(JOINED.format(method=method, operator="+=")) == ["KLA301"]


NORMALISED = """
import torch
class Learner:
    def step(self, logps, ref_logps, mask, scores):
        {rewards} = scores - self.args.kl_coef * ((logps - ref_logps) * mask).sum(-1)
        return self.normalised({rewards})
    def normalised(self, rewards):
        grouped = rewards.view(-1, self.args.samples)
        advantages = grouped - grouped.mean(dim=1, keepdim=True)
        {divided}
        return advantages
"""
ALWAYS = "advantages = advantages / (grouped.std(dim=1, keepdim=True) + 1e-6)"
SOMETIMES = "if self.args.critic == 'grpo':\n            " + ALWAYS
WHITENED = "advantages = advantages / (grouped.std() + 1e-6)"


@pytest.mark.parametrize("rewards", ["rewards", "r"])
@pytest.mark.parametrize(
    "divided",
    [
        ALWAYS,
        "std = grouped.std(dim=-1, keepdim=True)\n        advantages = advantages / (std + 1e-6)",
        "advantages = advantages / torch.clamp(grouped.std(1, keepdim=True), min=1e-6)",
    ],
)
def test_inside_group_std_k1_is_rescaled(divided: str, rewards: str) -> None:
    code = NORMALISED.format(divided=divided, rewards=rewards)
    assert rules_of(code) == ["KLA108"]
    (setup,) = setups(result_of(code))
    assert (setup.verdict, setup.terms[0].verdict, setup.terms[0].normalised_by_group_std) == (
        "rescaled",
        "rescaled",
        True,
    )


def test_the_condition_that_it_hangs_on_is_named_and_the_launch_is_judged() -> None:
    code = NORMALISED.format(divided=SOMETIMES, rewards="rewards")
    assert not findings_of(code)
    (setup,) = setups(result_of(code))
    assert "divided by the group's standard deviation when self.args.critic = grpo" in setup.terms[0].facts
    assert (setup.verdict, setup.terms[0].active, setup.terms[0].normalised_by_group_std) == ("unknown", None, None)


def test_what_both_ways_hang_on_is_kept() -> None:
    code = """
    def advantages(self, logps, ref_logps, scores):
        rewards = scores
        if self.args.kl_in_reward:
            rewards = rewards - self.args.beta * (logps - ref_logps)
        grouped = rewards.view(-1, 8)
        advantages = grouped - grouped.mean(dim=1, keepdim=True)
        if self.args.scale:
            advantages = advantages / (grouped.std(dim=1, keepdim=True) + 1e-4)
        return advantages
    """
    formula = only(code)
    assert (formula.condition, formula.group_std) == ("self.args.kl_in_reward", "self.args.scale")
    (setup,) = setups(result_of(code))
    assert setup.terms[0].active is None


@pytest.mark.parametrize("divided", ["pass", WHITENED])
def test_whitening_of_a_batch_is_no_group_std(divided: str) -> None:
    code = NORMALISED.format(divided=divided, rewards="rewards")
    assert rules_of(code) == []
    (setup,) = setups(result_of(code))
    assert setup.verdict == "unbiased"


HANDED_ON = """
import torch
from losses import TABLE
def policy_loss(log_prob, old_log_prob, advantages, config, **kwargs):
    pg_loss = -(advantages * log_prob).mean()
    pick = {table}.get(config.kind)
    {handed}
    return pg_loss + config.coef * pick(log_prob, old_log_prob, **handed)
"""
CALLED = """
import torch
def none(log_prob, old_log_prob, **kwargs):
    return torch.tensor(0.0)
def weighted(log_prob, old_log_prob, **kwargs):
    ref_log_prob = kwargs.get("ref_log_prob")
    d = ref_log_prob - log_prob
    return (torch.exp(d) - d - 1).mean()
TABLE_OF_LOSSES = {"none": none, "weighted": weighted}
"""


@pytest.mark.parametrize(
    "handed",
    [
        "handed = kwargs",
        "handed = dict(kwargs)",
        "handed = {**kwargs, 'log_prob': log_prob}",
        "handed = {k: v for k, v in kwargs.items() if k != 'config'}",
        "handed = dict(kwargs); handed.update(context()); handed['step'] = 1",
    ],
)
def test_keywords_that_are_handed_on_are_followed(handed: str) -> None:
    code = HANDED_ON.format(handed=handed, table="TABLE_OF_LOSSES").replace("import TABLE", "import TABLE_OF_LOSSES")
    formula = only(code, {"losses.py": CALLED})
    assert (formula.placement, formula.what.estimator) == ("loss", "k3")
    assert "kwargs['ref_log_prob']" in {atom.text for atom in formula.atoms}


LOGGED = """
class Trainer:
    def step(self, batch):
        logp, ref_logp = batch["logp"], batch["ref_logp"]
        shaping = -self.beta * (logp - ref_logp)
        rlhf_reward = batch["scores"] + shaping
        {use}
"""


@pytest.mark.parametrize(
    ("use", "placement"),
    [
        ('self.stats["objective/reward"].append(rlhf_reward.mean().item())', "metric"),
        ('metrics["reward"] = rlhf_reward.mean()', "metric"),
        ("if self.verbose:\n            logger.info(rlhf_reward.mean())", "metric"),
        ("print(rlhf_reward)", "metric"),
        ("mean = rlhf_reward.mean()\n        self.stats.append(mean)", "metric"),
        ("mean = rlhf_reward.mean()\n        self.stats.append(mean)\n        return mean", "reward"),
        ('metrics["reward"] = rlhf_reward.mean()\n        return self.advantages(rlhf_reward)', "reward"),
        ("self.log('reward', rlhf_reward.mean())", "metric"),
        ("self.buffer.add(rlhf_reward)", "reward"),
        ("self.buffer.record(rlhf_reward)", "reward"),
        ("self.trajectory.log(rlhf_reward)", "reward"),
        ("logger.info('r', kept := rlhf_reward)\n        return kept", "reward"),
        ("returns = rlhf_reward.flip(1).cumsum(1)\n        self.stats.append(returns)", "metric"),
        ("pass", "reward"),
    ],
)
def test_a_reward_that_is_only_logged_trains_nobody(use: str, placement: str) -> None:
    found = {formula.placement for formula in result_of(LOGGED.format(use=use)).formulas}
    assert found == {placement}
