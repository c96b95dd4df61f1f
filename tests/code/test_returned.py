"""What a function that nothing else of its file calls gives back: a penalty, a reward less its penalty, or nobody knows."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import only, result_of, rules_of, used

K1 = "(logp - ref_logp)"
K1_OLD = "(old_logp - ref_logp)"
K3 = "(torch.exp(ref_logp - logp) - (ref_logp - logp) - 1)"
GIVEN = "logp, old_logp, ref_logp, coef"

REWARDED = {
    "scores": f"def apply_kl_penalty(scores, {GIVEN}):\n    return scores - coef * {K1}\n",
    "rewards": f"def penalised(rewards, {GIVEN}):\n    return rewards - coef * {K1}\n",
    "at rollout": f"def penalty(x, {GIVEN}):\n    return x - coef * {K1_OLD}\n",
    "turned round": f"def shape(scores, {GIVEN}):\n    return scores + coef * (ref_logp - logp)\n",
    "stepwise": f"def penalised(scores, {GIVEN}):\n    kl = {K1}\n    penalty = coef * kl\n    total = scores - penalty\n    return total\n",
    "a class of rewards": f"class KLRewardFn:\n    def __call__(self, outcome, {GIVEN}):\n        return outcome - coef * {K1}\n",
    "a scorer": f"class Scorer:\n    def __call__(self, s, {GIVEN}):\n        return s - coef * {K1}\n",
    "without gradient": f"@torch.no_grad()\ndef experience(x, {GIVEN}):\n    total = x - coef * {K1}\n    return logp, ref_logp, total\n",
    "by a key": f"@torch.no_grad()\ndef experience(x, {GIVEN}):\n    return {{'logp': logp, 'returns': x - coef * {K1}}}\n",
    "as a method": f"class Manager:\n    def run(self, batch, {GIVEN}):\n        score = batch['score'] - self.beta * {K1}\n        return score\n",
}


@pytest.mark.parametrize("which", REWARDED)
def test_what_a_penalty_is_subtracted_from_is_a_reward(which: str) -> None:
    code = "import torch\n" + REWARDED[which]
    assert [formula.placement for formula in used(code)] == ["reward"]
    assert rules_of(code) == []
    assert rules_of(code.replace(K1, K3).replace(K1_OLD, K3)) in (
        ["KLA102"],
        [],
    )  # reversed where the log-ratio is written so


LOSSES = {
    "added": (f"def step(pg, {GIVEN}):\n    return pg + coef * {K3}\n", ["KLA101"]),
    "subtracted from a loss": (
        f"def step(pg_loss, {GIVEN}):\n    return pg_loss - coef * {K3}\n",
        ["KLA101", "KLA301"],
    ),
    "alone": (f"def regulariser({GIVEN}):\n    return coef * {K3}\n", ["KLA101"]),
    "a log-ratio called KL": (f"def kl_term({GIVEN}):\n    return coef * {K1}\n", ["KLA103"]),
    "a log-ratio in a KL": (f"def term({GIVEN}):\n    kl = {K1}\n    return coef * kl\n", ["KLA103"]),
}


@pytest.mark.parametrize("which", LOSSES)
def test_what_is_added_is_part_of_a_loss(which: str) -> None:
    code, rules = LOSSES[which]
    assert [formula.placement for formula in used("import torch\n" + code)] == ["loss"]
    assert set(rules) <= set(rules_of("import torch\n" + code))


UNDECIDED = {
    "an implicit reward": f"def rm_score({GIVEN}):\n    q = {K1}\n    return coef * q\n",
    "a penalty without gradient": f"def term({GIVEN}):\n    kl = {K1_OLD}\n    return coef * kl\n",
    "an objective": f"def surrogate(adv, {GIVEN}):\n    return torch.exp(logp - old_logp) * adv - coef * {K3}\n",
    "nobody knows": f"def combine(x, {GIVEN}):\n    return x - coef * {K3}\n",
}


@pytest.mark.parametrize("which", UNDECIDED)
def test_nothing_is_said_of_what_may_be_either(which: str) -> None:
    code = "import torch\n" + UNDECIDED[which]
    assert used(code) == []
    assert rules_of(code) == []


MEANS = {  # of a penalty
    "of the batch": "kl.mean()",
    "of the tokens": "(kl * mask).sum() / mask.sum()",
    "of the row": "kl.mean(-1, keepdim=True)",
}


@pytest.mark.parametrize("which", MEANS)
@pytest.mark.parametrize(
    "store",
    [
        "rewards = rewards - coef * (kl - {mean})",
        "rewards = rewards + coef * mask * ({mean} - kl)",
        "rewards += coef * ({mean} - kl)",
    ],
)
def test_a_mean_that_is_taken_off_the_penalty_is_a_baseline(which: str, store: str) -> None:
    code = f"""
    def compute_rewards(rewards, logp, ref_logp, mask, coef):
        kl = logp - ref_logp
        {store.format(mean=MEANS[which])}
        return rewards
    """
    assert rules_of(code) == []
    formula = only(code)
    assert (formula.placement, formula.what.estimator, formula.sign(formula.what)) == ("reward", "k1", -1)


ONCE = """
import torch
def loss_fn(logp, old_logp, ref_logp, beta):
    adv = {sign}beta * (old_logp - ref_logp)
    return -(torch.exp(logp - old_logp) * adv).mean()
"""


def test_a_reward_that_the_ratio_multiplies_counts_once() -> None:
    (formula,) = used(ONCE.format(sign="-"))
    assert (formula.placement, formula.what.estimator) == ("reward", "k1")
    assert rules_of(ONCE.format(sign="-")) == []


def test_its_sign_is_that_of_the_loss() -> None:
    assert rules_of(ONCE.format(sign="")) == ["KLA301"]
    assert len(used(ONCE.format(sign=""))) == 1
    turned = ONCE.format(sign="").replace("return -(", "return (")
    assert rules_of(turned) == []
    assert len([formula for formula in result_of(turned).formulas if formula.placement in ("loss", "reward")]) == 1


TURNED = {
    "a negated reward": f"def total({GIVEN}, neg_rewards):\n    return neg_rewards + coef * {K1_OLD}\n",
    "a negated score": f"def total({GIVEN}, scores):\n    neg_score = -scores\n    return neg_score + coef * {K1}\n",
    "a cost": f"def total_cost({GIVEN}, cost):\n    return cost + coef * {K1_OLD}\n",
    "an implicit reward": f"def implicit_reward({GIVEN}, score_bias):\n    return coef * {K1} + score_bias\n",
}


@pytest.mark.parametrize("which", TURNED)
def test_what_is_turned_round_is_nobodys_mistake(which: str) -> None:
    assert rules_of("import torch\n" + TURNED[which]) == []


OBJECTIVES = {
    "negated by the caller": """
def policy_objective(logp, old_logp, ref_logp, adv, beta):
    ratio = torch.exp(logp - old_logp)
    return (ratio * adv - beta * {kl}).mean()

def step(batch, beta):
    loss = -policy_objective(batch.logp, batch.old_logp, batch.ref_logp, batch.adv, beta)
    loss.backward()
""",
    "an attribute": """
class Agent:
    def step(self, logp, old_logp, ref_logp, adv):
        ratio = torch.exp(logp - old_logp)
        self.objective = (ratio * adv - self.beta * {kl}).mean()
        (-self.objective).backward()
""",
}


@pytest.mark.parametrize("which", OBJECTIVES)
def test_an_objective_may_be_maximised(which: str) -> None:
    code = "import torch\n" + OBJECTIVES[which]
    assert rules_of(code.replace("{kl}", "(logp - ref_logp) ** 2")) == []
    assert rules_of(code.replace("{kl}", K3)) == ["KLA101"]


@pytest.mark.parametrize("divided", ["/ (-n)", "/ -n", "/ -4", "* -1 / n"])
def test_a_minus_before_a_divisor_turns_the_loss(divided: str) -> None:
    code = f"""
    def loss_fn(logp, ref_logp, pg, beta, n):
        loss = (pg - beta * (logp - ref_logp) ** 2).sum() {divided}
        return loss
    """
    assert rules_of(code) == []
    assert rules_of(code.replace("pg - beta", "pg + beta")) == ["KLA301"]


@pytest.mark.parametrize(
    "loss", ["(logp * {d}.detach()).sum(1)", "(torch.exp(logp - logp.detach()) * {d}.detach()).mean()"]
)
def test_each_tokens_own_penalty_times_its_score_is_exact_per_token(loss: str) -> None:
    """Without a return-to-go a token gets no credit for the KL of later tokens, as with k2 in the loss."""
    code = f"""
    import torch
    def loss_fn(logp, ref_logp, pg, beta):
        return pg + beta * {loss.format(d="(logp - ref_logp)")}
    """
    (setup,) = setups(result_of(code))
    assert (setup.terms[0].estimator, setup.terms[0].gradient, setup.verdict) == ("k1", "score", "unbiased-per-token")
