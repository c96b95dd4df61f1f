"""Whose log-probabilities tensors are: by how they are computed, then by where they come from, then by their names."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, result_of, rules_of, told, used

LOSS = """
import contextlib
import torch
import torch.nn.functional as F
import trlx_like as library

class Trainer:
    def compute_loss(self, model, inputs, adv):
        {atoms}
        d = {p} - {q}
        kl = torch.exp(-d) - 1 + d
        return (-torch.exp({p} - inputs["old_logps"]) * adv + self.beta * kl).mean()
"""

# the text in place of {atoms}; {p} and {q} in them
SOURCES: dict[str, str] = {
    "the trained model and a reference model": """
        {p} = self._get_logps(model, inputs["ids"])
        {q} = self._get_logps(self.ref_model, inputs["ids"])
    """,
    "the same model with its adapter off": """
        {p} = self._get_logps(model, inputs["ids"])
        with torch.no_grad(), self.accelerator.unwrap_model(model).disable_adapter():
            {q} = self._get_logps(model, inputs["ids"])
    """,
    "an adapter of the reference": """
        {p} = self._get_logps(model, inputs["ids"])
        with torch.inference_mode():
            with use_adapter(model, adapter_name="ref"):
                {q} = self._get_logps(model, inputs["ids"])
    """,
    "either a reference model or an adapter that is off": """
        {p} = self._get_logps(model, inputs["ids"])
        with torch.no_grad():
            if self.ref_model is not None:
                {q} = self._get_logps(self.ref_model, inputs["ids"])
            else:
                with self.accelerator.unwrap_model(self.model).disable_adapter():
                    {q} = self._get_logps(self.model, inputs["ids"])
    """,
    "gathered from a log_softmax": """
        logits = model(inputs["ids"]).logits
        {p} = torch.gather(F.log_softmax(logits, dim=-1), 2, inputs["ids"].unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            ref_logits = self.ref_model(inputs["ids"]).logits
            {q} = torch.gather(F.log_softmax(ref_logits, dim=-1), 2, inputs["ids"].unsqueeze(-1)).squeeze(-1)
    """,
    "picked out minus logsumexp": """
        logits = model(inputs["ids"]).logits
        {p} = logits.gather(-1, inputs["ids"].unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
        {q} = inputs["ref_logps"]
    """,
    "cross-entropy": """
        logits = model(inputs["ids"]).logits
        {p} = -F.cross_entropy(logits.transpose(1, 2), inputs["ids"], reduction="none")
        {q} = inputs["ref_logps"]
    """,
    "a distribution": """
        {p} = torch.distributions.Categorical(logits=model(inputs["ids"]).logits).log_prob(inputs["ids"])
        {q} = inputs["ref_logps"]
    """,
    "keys of a batch": """
        {p} = self._get_logps(model, inputs["ids"])
        {q} = inputs["reference_log_probs"]
    """,
    "attributes of a batch": """
        {p} = self._get_logps(model, inputs["ids"])
        {q} = inputs.ref_log_prob[:, 1:].detach()
    """,
    "a frozen model": """
        {p} = self._get_logps(model, inputs["ids"])
        {q} = self._get_logps(self.frozen_model, inputs["ids"]).detach()
    """,
    "the initial model": """
        {p} = self._get_logps(model, inputs["ids"])
        {q} = self.initial_model.log_probs(inputs["ids"])
    """,
    "outputs of a method that gives pairs": """
        {p}, entropy = self._get_logps_and_entropies(model, inputs["ids"])
        {q}, _ = self._get_logps_and_entropies(self.ref_model, inputs["ids"])
    """,
    "a worker group": """
        {p} = self.actor.compute_log_prob(inputs)
        {q} = self.ref_policy_wg.compute_ref_log_prob(inputs)
    """,
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("p", "q"), [("logp", "ref_logp"), ("a", "b"), ("right", "left")])
def test_who_computed_it(name: str, p: str, q: str) -> None:
    code = LOSS.replace("{atoms}", SOURCES[name].strip()).replace("{p}", p).replace("{q}", q)
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)
    assert rules_of(code) == ["KLA101"]
    assert {atom.role for atom in only(code).atoms} == {"log pi", "log pi_ref"}
    assert all(atom.reason for atom in only(code).atoms)


def test_how_it_is_computed_counts_more_than_its_name() -> None:
    """The names are swapped: what the reference model computes is the reference's."""
    code = LOSS.replace("{atoms}", SOURCES["the trained model and a reference model"].strip())
    code = code.replace("{p}", "ref_logp").replace("{q}", "logp")
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)


OTHERS: dict[str, str] = {
    "the old policy": '{q} = inputs["old_per_token_logps"]',
    "the rollout policy": '{q} = inputs["rollout_log_probs"]',
    "the sampler": "{q} = inputs.sampling_logprobs",
    "the behaviour policy": '{q} = inputs["behavior_logprobs"]',
    "a teacher": "{q} = self._get_logps(self.teacher_model, inputs['ids'])",
    "a teacher's batch key": '{q} = inputs["teacher_logprobs"]',
    "the same model, detached": "{q} = {p}.detach()",
    "the same model again": "{q} = self._get_logps(model, inputs['ids']).detach()",
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_policy_is_not_the_reference(name: str) -> None:
    atoms = f'{{p}} = self._get_logps(model, inputs["ids"])\n        {OTHERS[name]}'
    code = LOSS.replace("{atoms}", atoms).replace("{p}", "logp").replace("{q}", "other")
    assert used(code) == []
    assert rules_of(code, notes=True) == []


def test_a_penalty_on_the_sampling_policy_is_named_so() -> None:
    """A reward that compares the old policy with the reference: the atoms say which of the two it was."""
    code = """
    def apply_kl_penalty(data, kl_ctrl):
        kld = data.batch["old_log_probs"] - data.batch["ref_log_prob"]
        token_level_rewards = data.batch["token_level_scores"] - kl_ctrl.value * kld
        data.batch["token_level_rewards"] = token_level_rewards
        return data
    """
    formula = only(code)
    assert told(formula) == ("reward", "k1", "none", -1)
    assert [atom.role for atom in formula.atoms] == ["log pi_old", "log pi_ref"]
    assert rules_of(code, notes=True) == []


@pytest.mark.parametrize(
    "detach",
    ["logp.detach()", "logp.data", "logp.clone().detach()", "jax.lax.stop_gradient(logp)", "logp.cpu().numpy()"],
)
def test_a_detached_policy_has_no_gradient(detach: str) -> None:
    code = f"""
    import jax
    def loss_fn(logp, old_logp, ref_logp, adv, beta):
        d = {detach} - ref_logp
        return (-(logp - old_logp).exp() * adv + beta * d ** 2 / 2).mean()
    """
    assert rules_of(code) == ["KLA303"]


JAX = [
    "jnp.exp(ref_logps - logps) - (ref_logps - logps) - 1",
    "jnp.expm1(ref_logps - logps) - (ref_logps - logps)",
    "jnp.subtract(jnp.exp(ref_logps - logps), ref_logps - logps) - 1.0",
    "jnp.where(mask, jnp.exp(ref_logps - logps) - (ref_logps - logps) - 1, 0.0)",
    "jnp.exp(jnp.clip(ref_logps - logps, -20.0, 20.0)) - jnp.clip(ref_logps - logps, -20.0, 20.0) - 1",
    "mx.exp(ref_logps - logps) - (ref_logps - logps) - 1",
    "tf.exp(ref_logps - logps) - (ref_logps - logps) - 1",
]


@pytest.mark.parametrize("formula", JAX)
def test_other_array_libraries(formula: str) -> None:
    code = f"""
    import jax, jax.numpy as jnp
    import mlx.core as mx
    import tensorflow as tf
    def grpo_loss_fn(params, batch, beta):
        logps = compute_logps(model, params, batch["ids"])
        ref_logps = batch["ref_per_token_logps"]
        mask = batch["mask"]
        ratio = jnp.exp(logps - jax.lax.stop_gradient(logps))
        kl = {formula}
        per_token_loss = -ratio * batch["advantages"] + beta * kl
        return (per_token_loss * mask).sum() / mask.sum()
    """
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)
    assert rules_of(code) == ["KLA101"]


def test_numpy_rewards() -> None:
    code = """
    import numpy as np
    def compute_rewards(scores, logprobs, ref_logprobs, beta):
        kl = np.subtract(logprobs, ref_logprobs)
        rewards = scores - beta * kl
        return rewards
    """
    assert told(only(code))[:2] == ("reward", "k1")


def test_a_reference_that_only_sets_itself_against_a_policy_is_doubted() -> None:
    code = """
    def loss_fn(logp, old_logp, ref, adv, beta):
        return (-(logp - old_logp).exp() * adv + beta * ((ref - logp).exp() - (ref - logp) - 1)).mean()
    """
    assert only(code).confidence == "medium"


def test_evidence_names_lines() -> None:
    code = LOSS.replace("{atoms}", SOURCES["the same model with its adapter off"].strip())
    code = code.replace("{p}", "x").replace("{q}", "y")
    reasons = {atom.role: atom.reason for formula in result_of(code).formulas for atom in formula.atoms}
    assert "adapter" in reasons["log pi_ref"]


def test_a_reference_among_the_results_of_the_policy_is_the_references() -> None:
    formula = only(
        """
class Trainer:
    def make_experience(self, tokens, scores):
        both = self.model.infer_logprobs(tokens)
        both = tree_map(lambda x: x.cpu(), both)
        log_ratio = both["logprobs"] - both["ref_logprobs"]
        for kl, score in zip(log_ratio, scores):
            rewards = self.kl_ctl.value * -kl
            rewards[-1] += score
"""
    )
    assert (formula.placement, formula.what.estimator) == ("reward", "k1")
    assert {atom.role for atom in formula.atoms} == {"log pi", "log pi_ref"}
