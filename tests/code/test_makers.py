"""Helpers that make log-probabilities: which model they ran, whether a gradient leaves them, with which sign."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of, told, used

GATHERED = "model(ids).logits.log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)"
# k3 of two calls of a helper
LOSS = """
import torch
{helper}

def compute_loss(model, ref_model, ids, pg_loss, beta):
    new = {call}(model, ids)
    other = {call}(ref_model, ids)
    x = other - new
    return pg_loss + beta * (x.exp() - x - 1).mean()
"""
HELPERS = {
    "a decorator": "@torch.no_grad()\ndef {name}(model, ids):\n    return {made}",
    "another decorator": "@torch.inference_mode()\ndef {name}(model, ids):\n    return {made}",
    "a block": "def {name}(model, ids):\n    with torch.no_grad():\n        return {made}",
    "a block around what is returned later": "def {name}(model, ids):\n    with torch.no_grad():\n        lp = {made}\n    return lp.float()",
    "a block around the forward pass": (
        "def {name}(model, ids):\n    with torch.inference_mode():\n        lp = model(ids).logits.log_softmax(-1)\n"
        "    return torch.gather(lp[:, :-1], -1, ids[:, 1:, None]).squeeze(-1)"
    ),
    "detach at the end": "def {name}(model, ids):\n    lp = {made}\n    return lp.detach()",
    "detach in the middle": "def {name}(model, ids):\n    lp = {made}.detach()\n    return lp.view(-1)",
    "stop_gradient": "def {name}(model, ids):\n    return jax.lax.stop_gradient({made})",
    "every way out": (
        "def {name}(model, ids):\n    if len(ids) > 1:\n        return {made}.detach()\n"
        "    with torch.no_grad():\n        return {made}"
    ),
}


def _helper(kind: str, name: str) -> str:
    return HELPERS[kind].format(name=name, made=GATHERED)


@pytest.mark.parametrize("name", ["lp", "get_logps", "compute_log_probs", "forward"])
@pytest.mark.parametrize("kind", HELPERS)
def test_a_gradient_that_is_lost_in_the_helper_is_lost(kind: str, name: str) -> None:
    code = (
        LOSS.format(helper=_helper(kind, name), call=name).replace("new =", "new_logp =").replace("- new", "- new_logp")
    )
    assert rules_of(code) == ["KLA303"]


@pytest.mark.parametrize("kind", HELPERS)
def test_in_another_file_too(kind: str) -> None:
    code = LOSS.format(helper="from lp import get_logps", call="get_logps")
    assert rules_of(code, {"lp.py": "import jax, torch\n" + _helper(kind, "get_logps")}) == ["KLA303"]


@pytest.mark.parametrize("decorated", [True, False])
def test_a_method_of_the_class_of_the_models(decorated: bool) -> None:
    """Who calls it holds objects that come from outside; one class of the file has a method of that name."""
    code = f"""
        import torch

        class Scorer:
            {"@torch.no_grad()" if decorated else ""}
            def get_logps(self, ids):
                return self.model(ids).logits.log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)

        class Trainer:
            def compute_loss(self, ids, pg_loss):
                x = self.reference.get_logps(ids) - self.policy.get_logps(ids)
                return pg_loss + self.beta * (x.exp() - x - 1).mean()
        """
    assert rules_of(code) == (["KLA303"] if decorated else ["KLA101"])


@pytest.mark.parametrize(
    "body",
    [
        "return {made}",
        "with torch.no_grad():\n        size = ids.sum()\n    return {made}",
        "if ids is None:\n        return {made}.detach()\n    return {made}",
        "lp = {made}\n    entropy = -(lp.exp() * lp).detach().sum(-1)\n    return lp",
        "lp = {made}\n    with torch.no_grad():\n        entropy = -lp.exp() * lp\n    return lp",
        "return -torch.nn.functional.cross_entropy(model(ids).logits, ids, reduction='none')",
        "loss = torch.nn.functional.cross_entropy(model(ids).logits, ids, reduction='none')\n    return -loss",
    ],
)
def test_a_gradient_that_is_kept_on_some_way_is_kept(body: str) -> None:
    helper = f"def get_logps(model, ids):\n    {body.format(made=GATHERED)}"
    assert rules_of(LOSS.format(helper=helper, call="get_logps")) == ["KLA101"]


@pytest.mark.parametrize(
    "body",
    [
        "return -{made}",
        "lp = {made}\n    return -lp",
        "lp = -{made}\n    return lp.float()",
        "lp = {made}\n    nll = -lp.squeeze()\n    return nll",
    ],
)
def test_the_sign_that_a_helper_returns_counts(body: str) -> None:
    helper = f"def get_logps(model, ids):\n    {body.format(made=GATHERED)}"
    assert rules_of(LOSS.format(helper=helper, call="get_logps")) == ["KLA302"]


NEUTRAL = """
import torch

{before}
def compute_loss(self, model, ref_model, ids, pg_loss, beta):
    logp = {of_policy}
    with torch.no_grad():
        base = {of_reference}
    x = base - logp
    return pg_loss + beta * (x.exp() - x - 1).mean()
"""


@pytest.mark.parametrize("parameter", ["model", "m", "net", "module"])
@pytest.mark.parametrize("name", ["run", "fwd", "score_sequence"])
@pytest.mark.parametrize(("policy", "reference"), [("model", "ref_model"), ("self.model", "self.ref_model")])
def test_a_helper_of_any_name_runs_the_model_that_it_is_given(
    name: str, parameter: str, policy: str, reference: str
) -> None:
    helper = f"def {name}({parameter}, ids):\n    return {GATHERED.replace('model', parameter)}\n"
    code = NEUTRAL.format(before=helper, of_policy=f"{name}({policy}, ids)", of_reference=f"{name}({reference}, ids)")
    formula = only(code)
    assert told(formula) == ("loss", "k3", "pathwise", 1)


@pytest.mark.parametrize("name", ["token_logps", "logprobs_from_logits", "lp"])
@pytest.mark.parametrize(
    "body", ["logits.gather(-1, ids) - logits.logsumexp(-1)", "fused_kernel(logits, ids)", "logits.log_softmax(-1).gather(-1, ids)"]
)  # fmt: skip
def test_a_helper_is_given_logits_of_either(name: str, body: str) -> None:
    code = f"""
        def {name}(logits, ids):
            return {body}

        def compute_loss(logits, ref_logits, ids, pg_loss, beta):
            x = {name}(ref_logits, ids) - {name}(logits, ids)
            return pg_loss + beta * (x.exp() - x - 1).mean()
        """
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)


@pytest.mark.parametrize(
    ("policy", "reference"),
    [
        ("model(ids)", "jax.lax.stop_gradient(ref_model(ids))"),
        ("model(ids)", "ref_model(ids).detach()"),
        ("model.apply(params, ids)", "mx.stop_gradient(model.apply(ref_params, ids))"),
        ("model(ids)", "torch.detach(ref_model(ids))"),
    ],
)
@pytest.mark.parametrize("names", [("logits", "ref_logits"), ("a", "b")])
def test_logits_of_a_model_whose_gradient_is_stopped(policy: str, reference: str, names: tuple[str, str]) -> None:
    one, other = names
    code = f"""
        import jax, torch
        import mlx.core as mx

        def loss_fn(model, ref_model, params, ref_params, ids, pg_loss, beta):
            {one} = {policy}
            {other} = {reference}
            logp = jax.nn.log_softmax({one})[ids]
            x = jax.nn.log_softmax({other})[ids] - logp
            return pg_loss + beta * (jax.numpy.exp(x) - x - 1).mean()
        """
    (formula,) = used(code)
    assert not formula.detached and formula.placement == "loss"


@pytest.mark.parametrize("name", ["logits", "scores"])
def test_gather_less_logsumexp_is_the_log_probability(name: str) -> None:
    code = f"""
        def compute_loss(model, ref_model, ids, pg_loss, beta):
            {name} = model(ids).logits
            ref_{name} = ref_model(ids).logits
            logp = {name}.gather(-1, ids) - {name}.logsumexp(-1)
            x = ref_{name}.gather(-1, ids) - ref_{name}.logsumexp(-1) - logp
            return pg_loss + beta * (x.exp() - x - 1).mean()
        """
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)
