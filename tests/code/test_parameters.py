"""One network called with the parameters of one model or of the other, as functional code does: the parameters say whose it is."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of, told, used

STEP = """
import copy
import functools
import flax
import jax
import jax.numpy as jnp
import optax

def step(state, ref_state, ref_params, batch, apply_fn, network):
    {before}

    def loss_fn(params):
        {atoms}
        d = new - other
        return (batch["pg"] + beta * (jnp.exp(-d) - 1 + d)).mean()

    return jax.value_and_grad(loss_fn)(state.params)
"""

PICK = "jnp.take_along_axis(jax.nn.log_softmax({}, axis=-1), batch['ids'][..., None], -1).squeeze(-1)"

# what stands before the loss, the call with the policy's parameters and the call with the reference's
CALLS: dict[str, tuple[str, str, str]] = {
    "an apply function": ("", "apply_fn(params, batch['ids']).logits", "apply_fn(ref_params, batch['ids']).logits"),
    "a method": ("", "network.apply(params, batch['ids'])", "network.apply(ref_params, batch['ids'])"),
    "by keyword": (
        "",
        "network(batch['ids'], params=params, train=True).logits",
        "network(batch['ids'], params=ref_params, train=False).logits",
    ),
    "in a dictionary": (
        "",
        "network.apply({'params': params}, batch['ids'])",
        "network.apply({'params': ref_params}, batch['ids'])",
    ),
    "of a state": (
        "",
        "state.apply_fn(params, batch['ids'])",
        "state.apply_fn(ref_state.params, batch['ids'])",
    ),
    "a whole state": ("", "forward(state, batch['ids'])", "forward(ref_state, batch['ids'])"),
    "a part of them": (
        "",
        "apply_fn(params.backbone_params, batch['ids'])",
        "apply_fn(ref_params.backbone_params, batch['ids'])",
    ),
    "compiled": (
        "forward = jax.jit(network.apply)",
        "forward(params, batch['ids'])",
        "forward(ref_params, batch['ids'])",
    ),
    "given beforehand": (
        "compare = functools.partial(apply_fn, ref_params)",
        "apply_fn(params, batch['ids'])",
        "compare(batch['ids'])",
    ),
    "given beforehand, and compiled": (
        "compare = jax.jit(functools.partial(apply_fn, params=ref_params))",
        "apply_fn(params, batch['ids'])",
        "compare(batch['ids'])",
    ),
    "a copy made at the start": (
        "sft_params = copy.deepcopy(state.params)",
        "policy_forward(params, batch['ids'])",
        "policy_forward(sft_params, batch['ids'])",
    ),
    "a helper of the file": (
        "def forward(params, ids):\n        return network.apply(params, ids)",
        "forward(params, batch['ids'])",
        "forward(ref_params, batch['ids'])",
    ),
}


def _step(before: str, new: str, other: str) -> str:
    atoms = f"new = {PICK.format(new)}\n        other = {PICK.format(other)}"
    return STEP.replace("{before}", before).replace("{atoms}", atoms)


@pytest.mark.parametrize("which", CALLS)
def test_parameters_say_whose_log_probability_it_is(which: str) -> None:
    formula = only(_step(*CALLS[which]))
    assert told(formula) == ("loss", "k3", "pathwise", 1)
    assert {atom.role for atom in formula.atoms} == {"log pi", "log pi_ref"}


@pytest.mark.parametrize("which", CALLS)
def test_the_other_way_round_is_another_formula(which: str) -> None:
    """Parameters given the other way round turn the ratio round."""
    before, new, other = CALLS[which]
    assert rules_of(_step(before, new, other)) == ["KLA101"]
    assert "KLA302" in rules_of(_step(before, other, new))


@pytest.mark.parametrize(
    ("new", "other"),
    [
        ("apply_fn(params, ids)", "apply_fn(state.params, ids)"),
        ("apply_fn(params, ids)", "apply_fn(old_params, ids)"),
        ("apply_fn(params, ids)", "apply_fn(base_params, ids)"),
        ("apply_fn(params, ids)", "apply_fn(frozen_params, ids)"),
        ("apply_fn(params, ids)", "network(ids, initial_state)"),
        ("apply_fn(params, ids)", "network.generate(ids, sampling_params)"),
        ("apply_fn(params, ref_params, ids)", "apply_fn(params, ids)"),
        ("apply_fn(ref_params, ids)", "apply_fn(ref_state.params, ids)"),
        ("apply_fn(ref_params, ids)", "apply_fn(teacher_params, ids)"),
    ],
)
def test_other_parameters_make_no_penalty(new: str, other: str) -> None:
    """The policy's own, those of the last step, parts of a policy with adapters, states of a network, several at once."""
    assert [formula for formula in used(_step("", new, other)) if formula.what.estimator != "unknown"] == []
    assert rules_of(_step("", new, other)) == []
