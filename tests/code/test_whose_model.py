"""Whose model computed it: adapters that are switched, copies that are kept, outputs that hold several tensors, batches cut in two."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of, told, used

ADAPTER = """
import torch

def train_step(self, model, ids, pg_loss, beta):
    logp = {made}
    with torch.no_grad():
        {off}
        other = {made}
        {on}
    {after}
    x = other - logp
    loss = pg_loss + beta * (x.exp() - x - 1).mean()
    loss.backward()
"""
DIRECT = "model(ids).logits.log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)"
SWITCHES = [
    ("model.disable_adapter_layers()", "model.enable_adapter_layers()"),
    ("model.disable_adapters()", "model.enable_adapters()"),
    ('model.set_adapter("reference")', 'model.set_adapter("default")'),
    ('model.set_adapter("ref")', 'model.set_adapter("policy")'),
    ("model.base_model.disable_adapter_layers()", "model.base_model.enable_adapter_layers()"),
]


@pytest.mark.parametrize(("off", "on"), SWITCHES)
@pytest.mark.parametrize("made", [DIRECT, "self.get_logps(model, ids)"])
def test_an_adapter_that_a_call_switches(off: str, on: str, made: str) -> None:
    formula = only(ADAPTER.format(off=off, on=on, made=made, after=""))
    assert told(formula) == ("loss", "k3", "pathwise", 1)


@pytest.mark.parametrize(("off", "on"), SWITCHES)
def test_after_it_is_switched_back_the_policy_speaks(off: str, on: str) -> None:
    code = ADAPTER.format(off=off, on=on, made="model.logps(ids)", after="other = model.logps(ids)")
    assert used(code) == []


@pytest.mark.parametrize("name", ["policy", "default", "student"])
def test_another_adapter_is_not_the_reference(name: str) -> None:
    code = ADAPTER.format(off=f'model.set_adapter("{name}")', on="", made=DIRECT, after="")
    assert used(code) == []


@pytest.mark.parametrize(
    ("policy", "reference"),
    [
        ("out.logps", "ref_out.logps"),
        ('outputs["log_probs"]', 'ref_outputs["log_probs"]'),
        ("policy_output.logprobs", "reference_output.logprobs"),
    ],
)
def test_what_holds_it_says_whose_it_is(policy: str, reference: str) -> None:
    holders = ", ".join(text.partition(".")[0].partition("[")[0] for text in (policy, reference))
    code = f"""
        def compute_loss({holders}, pg_loss, beta):
            x = {reference} - {policy}
            return pg_loss + beta * (x.exp() - x - 1).mean()
        """
    assert rules_of(code) == ["KLA101"]


COPY = """
import copy
import torch

def logps(model, ids):
    return model(ids).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)

def run(ids, adv, beta):
    policy = make()  # and ref
    {name} = {made}
    with torch.no_grad():
        {kept} = logps({name}, ids)
    new_logp = logps(policy, ids)
    x = {kept} - new_logp
    loss = -(new_logp * adv).mean() + beta * (x.exp() - x - 1).mean()
    loss.backward()
"""


@pytest.mark.parametrize("name", ["ref", "ref_model", "reference", "initial_model", "model_0", "pi0"])
@pytest.mark.parametrize(
    "made", ["copy.deepcopy(policy)", "copy.deepcopy(policy).eval()", "copy.deepcopy(policy).to(0).eval()"]
)
@pytest.mark.parametrize("kept", ["rl", "b"])
def test_a_copy_of_the_policy_made_in_the_function(name: str, made: str, kept: str) -> None:
    assert rules_of(COPY.format(name=name, made=made, kept=kept)) == ["KLA101"]


@pytest.mark.parametrize("name", ["old_policy", "rollout_model", "target_model", "model", "policy"])
def test_a_copy_for_something_else(name: str) -> None:
    assert rules_of(COPY.format(name=name, made="copy.deepcopy(policy)", kept="b")) == []


@pytest.mark.parametrize("name", ["initial", "ref", "model_0", "reference_model"])
@pytest.mark.parametrize("mode", ["", ".eval()"])
def test_a_copy_that_is_an_attribute(name: str, mode: str) -> None:
    code = f"""
        import copy
        import torch

        class Trainer:
            def __init__(self, model):
                self.model = model
                self.{name} = copy.deepcopy(model){mode}

            def train_step(self, ids, pg_loss, beta):
                logp = self.model(ids).logits.log_softmax(-1).gather(-1, ids)  # ref
                with torch.no_grad():
                    b = self.{name}(ids).logits.log_softmax(-1).gather(-1, ids)
                x = b - logp
                loss = pg_loss + beta * (x.exp() - x - 1).mean()
                loss.backward()
        """
    assert rules_of(code) == ["KLA101"]


@pytest.mark.parametrize("detach", ["", ".detach()"])
@pytest.mark.parametrize("both", ["all_logps", "lp"])
@pytest.mark.parametrize("unpacked", [True, False])
def test_one_batch_that_went_through_both_models_is_cut(detach: str, both: str, unpacked: bool) -> None:
    cut = (
        f"logps, ref_logps = {both}[:n], {both}[n:]{detach}"
        if unpacked
        else f"logps = {both}[:n]\n            ref_logps = {both}[n:]{detach}"
    )
    code = f"""
        def compute_loss({both}, n, pg_loss, beta):
            {cut}
            x = ref_logps - logps
            return pg_loss + beta * (x.exp() - x - 1).mean()
        """
    assert rules_of(code) == ["KLA101"]
