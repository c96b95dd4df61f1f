"""What a training step returns beside the loss it trains on: copies for the logs, and rewards that are no penalty."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of

STEP = """
import torch
class Trainer:
    def {name}(self, model, batch):
        logps = self.get_per_token_logps(model, batch)
        ref_logps = batch["ref_logps"]
        kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
        loss = (batch["pg"] * logps + self.beta * kl).mean()
        {train}
        return {returned}
"""
TRAIN = ["loss.backward()", "self.accelerator.backward(loss)"]
COPIES = [
    "loss.detach()",
    "loss.item()",
    'loss.detach(), {"kl": kl.mean().item()}',
    '{"loss": loss.item(), "tensor": loss}',
]


@pytest.mark.parametrize("name", ["training_step", "policy_loss", "update"])
@pytest.mark.parametrize("train", TRAIN)
@pytest.mark.parametrize("returned", COPIES)
def test_the_loss_is_trained_on_and_a_copy_of_it_returned(name: str, train: str, returned: str) -> None:
    assert rules_of(STEP.format(name=name, train=train, returned=returned)) == ["KLA101"]


@pytest.mark.parametrize("name", ["training_step", "policy_loss"])
def test_only_a_detached_loss_is_returned(name: str) -> None:
    assert rules_of(STEP.format(name=name, train="pass", returned="loss.detach()")) == ["KLA303"]


@pytest.mark.parametrize("read_out", ["item", "tolist", "numpy"])
def test_a_number_is_no_detached_loss(read_out: str) -> None:
    assert not only(STEP.format(name="loss_step", train="pass", returned=f"loss.{read_out}()")).detached


def test_a_number_may_be_a_reward() -> None:
    code = """
    def shaped_rewards(scores, logps, ref_logps, beta):
        return (scores - beta * (logps - ref_logps)).tolist()
    """
    assert only(code).placement == "reward"


def test_the_loss_beside_its_number() -> None:
    code = """
    def grpo_loss_plus_kl(model, ref_model, batch, kl_coeff):
        logps = get_logps(model, batch)
        ref_logps = get_logps(ref_model, batch)
        loss = -(batch.adv * logps).mean() + kl_coeff * (logps - ref_logps).mean()
        return {"loss": loss.item(), "loss_tensor": loss}
    def train(model, ref_model, batches, optimizer):
        for batch in batches:
            grpo_loss_plus_kl(model, ref_model, batch, 0.02)["loss_tensor"].backward()
            optimizer.step()
    """
    assert rules_of(code) == ["KLA103"]


def test_an_implicit_reward_is_no_penalty() -> None:
    """As process reward models are trained: a logistic loss of a log-ratio, which the model returns when it is not trained."""
    code = """
    import torch.nn.functional as F
    class RewardModel:
        def forward(self, batch, labels=None):
            log_prob = logps_of(self.model, batch)
            ref_log_prob = logps_of(self.ref_model, batch)
            implicit_rewards = self.beta * (log_prob - ref_log_prob)
            implicit_rewards = implicit_rewards.masked_fill(~batch.mask, 0.)
            if labels is None:
                return implicit_rewards
            loss = labels * F.logsigmoid(implicit_rewards) + (1 - labels) * F.logsigmoid(-implicit_rewards)
            return loss.mean()
    """
    assert rules_of(code, notes=True) == []


def test_an_aggregator_in_an_attribute_is_an_average() -> None:
    code = STEP.format(name="policy_loss", train="pass", returned="loss").replace(
        "loss = (batch", 'kl = self.masked_aggregator(kl, batch["mask"], axis=1)\n        loss = (batch'
    )
    assert rules_of(code) == ["KLA101"]


def test_a_probability_does_not_overflow() -> None:
    code = """
    import torch
    def token_loss(policy_logps, ref_logps, adv, beta):
        share = torch.clamp(policy_logps.exp() / (ref_logps.exp() + 1e-6), max=1.0)
        return -(adv * policy_logps).mean() - (share.detach() * policy_logps).mean()
    """
    assert "KLA305" not in rules_of(code, notes=True)
