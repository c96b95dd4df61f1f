"""Before and after a rewrite, on tensors: the penalty's expected gradient becomes that of KL(pi||ref), with the same coefficient.

A batch holds each token as often as its probability says, so that its mean is the expectation under the policy, exactly.
"""

from __future__ import annotations

import textwrap
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.fixes.codemod_cases import fixed, loaded, rewritten  # noqa: E402

BETA = 0.3
COUNTS = (4, 3, 2, 1)  # of 10: the policy's probabilities

ESTIMATORS = {
    "inline": "kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1",
    "named": "log_ratio = ref_logp - logp\nkl = log_ratio.exp() - 1 - log_ratio",
    "other way round": "d = logp - ref_logp\nkl = torch.expm1(-d) + d",
    "helper": "kl = k3(logp, ref_logp)",
    "helper by keyword": "kl = k3(reference=ref_logp, policy=logp)",
    "clamped": "kl = torch.clamp(torch.exp(ref_logp - logp) - (ref_logp - logp) - 1, max=10.0)",
    "abs": "kl = (logp - ref_logp).abs()",
    "k1": "kl = logp - ref_logp",
}
POLICIES = {
    "clipped": "pg = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv)",
    "clipped from above": "pg = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2))",
    "plain": "pg = -ratio * adv",
    "score": "pg = -(logp * adv)",
    "negative factor": "pg = ratio * -1.0 * adv",
    "masked": "pg = -(ratio * adv * mask)\nkl = kl * mask",
}
SUMS = {
    "of tokens": "loss = mean(pg + beta * kl, mask)",
    "in place": "loss = pg\nloss += kl * beta\nloss = mean(loss, mask)",
    "assigned": "pg = pg + beta * kl\nloss = (pg * mask).sum() / mask.sum()",
    "penalty first": "loss = mean(beta * kl + pg, mask)",
    "of means": "loss = mean(pg, mask) + beta * mean(kl, mask)",
    "of named means": "kl_loss = mean(kl, mask)\npolicy_loss = mean(pg, mask)\nloss = policy_loss + kl_loss * beta",
    "of an objective": "surrogate = -pg\nloss = -(mean(surrogate, mask) - beta * mean(kl, mask))",
    "guarded": "loss = pg\nif beta > 0:\n    loss = loss + beta * kl\nloss = mean(loss, mask)",
}
ADVANTAGES = {
    "as it is": "adv = advantages",
    "a view": "adv = advantages.squeeze(1)[:, None]",
}

HEAD = """
import torch

def k3(policy, reference):
    x = reference - policy
    return x.exp() - x - 1

def mean(x, mask):
    return (x * mask).sum() / mask.sum()

def compute_loss(logp, old_logp, ref_logp, advantages, mask, beta):
    ratio = torch.exp(logp - old_logp)
"""


def loss_code(estimator: str, policy: str, total: str, advantage: str = "adv = advantages") -> str:
    body = "\n".join((advantage, estimator, policy, total, "return loss, kl.mean().item()"))
    return HEAD + textwrap.indent(body, "    ") + "\n"


def setting(*, off_policy: bool = False) -> tuple[Any, ...]:
    """Logits, sampled tokens, reference, advantages; float64."""
    probabilities = torch.tensor(COUNTS, dtype=torch.float64) / sum(COUNTS)
    theta = probabilities.log().clone().requires_grad_()
    tokens = torch.tensor([token for token, count in enumerate(COUNTS) for _ in range(count)])[:, None]
    reference = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).log()
    advantages = torch.linspace(-1, 1, len(tokens), dtype=torch.float64)[:, None]
    behaviour = theta.detach() + (torch.tensor([0.05, -0.02, 0.1, -0.04], dtype=torch.float64) if off_policy else 0.0)
    old = torch.log_softmax(behaviour, -1)
    return theta, tokens, reference, advantages, old


def gradient(code: str, beta: float) -> Any:
    theta, tokens, reference, advantages, old = setting()
    logp = torch.log_softmax(theta, -1)[tokens]
    mask = torch.ones_like(logp)
    loss, _ = loaded(code)(logp, old[tokens], reference[tokens], advantages, mask, beta)
    (found,) = torch.autograd.grad(loss, theta)
    return found


def gradient_of_kl() -> Any:
    theta, _, reference, _, _ = setting()
    log_p = torch.log_softmax(theta, -1)
    (found,) = torch.autograd.grad((log_p.exp() * (log_p - reference)).sum(), theta)
    return found


CASES = [
    *product(ESTIMATORS, ["clipped"], ["of tokens", "of named means"], ["as it is"]),
    *product(["inline"], POLICIES, ["assigned"], ["as it is"]),
    *product(["named"], ["plain"], SUMS, ADVANTAGES),
]


@pytest.mark.parametrize(("estimator", "policy", "total", "advantage"), CASES)
def test_the_penalty_descends_the_kl_afterwards(estimator: str, policy: str, total: str, advantage: str) -> None:
    code = loss_code(ESTIMATORS[estimator], POLICIES[policy], SUMS[total], ADVANTAGES[advantage])
    made = rewritten(code)
    assert made.content is not None, [each.why for each in made.unchanged]
    assert [each.target for each in made.migrations] == ["k1-in-reward"]
    after = made.content.decode()
    assert rewritten(after).content is None  # twice is once

    without = gradient(code, 0.0)
    penalty_before = (gradient(code, BETA) - without) / BETA
    penalty_after = (gradient(after, BETA) - without) / BETA
    assert torch.allclose(gradient(after, 0.0), without)
    assert torch.allclose(penalty_after, gradient_of_kl(), atol=1e-10), after
    assert not torch.allclose(penalty_before, gradient_of_kl(), atol=1e-3)


@pytest.mark.parametrize(("estimator", "total"), [*product(ESTIMATORS, ["of tokens", "of named means", "guarded"])])
def test_k2_in_the_loss_has_the_same_expected_gradient(estimator: str, total: str) -> None:
    after = fixed(loss_code(ESTIMATORS[estimator], POLICIES["plain"], SUMS[total]), "k2-in-loss")
    penalty = (gradient(after, BETA) - gradient(after, 0.0)) / BETA
    assert torch.allclose(penalty, gradient_of_kl(), atol=1e-10), after


def test_what_is_logged_stays_the_estimate_of_the_kl() -> None:
    code = loss_code(ESTIMATORS["inline"], POLICIES["clipped"], SUMS["of tokens"])
    theta, tokens, reference, advantages, old = setting()
    logp = torch.log_softmax(theta, -1)[tokens]
    given = (logp, old[tokens], reference[tokens], advantages, torch.ones_like(logp), BETA)
    assert loaded(code)(*given)[1] == loaded(fixed(code))(*given)[1]


@pytest.mark.parametrize(
    "wrong", ["loss = mean(pg - beta * kl, mask)", "loss = pg\nloss -= beta * kl\nloss = mean(loss, mask)"]
)
def test_a_turned_sign_is_turned_back_and_the_penalty_moved(wrong: str) -> None:
    code = loss_code(ESTIMATORS["inline"], POLICIES["clipped"], wrong)
    made = rewritten(code)
    assert made.content is not None, [each.why for each in made.unchanged]
    assert [each.rules[:2] for each in made.migrations] == [("KLA301", "KLA101")]
    penalty = (gradient(made.content.decode(), BETA) - gradient(code, 0.0)) / BETA
    assert torch.allclose(penalty, gradient_of_kl(), atol=1e-10)


def test_off_policy_the_ratio_weighs_the_penalty_too() -> None:
    """E_old[rho * d * grad log pi]: the deducted k1 is that of the policy as it is, so that it is not stale."""
    code = loss_code(ESTIMATORS["inline"], POLICIES["plain"], SUMS["of tokens"])
    after = fixed(code)
    theta, tokens, reference, advantages, old = setting(off_policy=True)
    logp = torch.log_softmax(theta, -1)[tokens]
    mask = torch.ones_like(logp)

    def penalty(text: str) -> Any:
        losses = [loaded(text)(logp, old[tokens], reference[tokens], advantages, mask, beta)[0] for beta in (BETA, 0.0)]
        return torch.autograd.grad((losses[0] - losses[1]) / BETA, theta, retain_graph=True)[0]

    d = (logp - reference[tokens]).detach()
    wanted = torch.autograd.grad((torch.exp(logp - old[tokens]) * d).mean(), theta, retain_graph=True)[0]
    assert torch.allclose(penalty(after), wanted)
