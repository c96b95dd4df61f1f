"""Tokens, sequences and batches: what an average before a bend or before the reward makes of a formula."""

from __future__ import annotations

import math

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import findings_of, only, result_of, rules_of, told

LOSS = """
import torch
import jax.numpy as jnp

def masked_mean(x, mask, dim=None):
    return (x * mask).sum(dim) / mask.sum(dim)

def compute_loss(pg_loss, logp, old_logp, ref_logp, mask, beta, margin, target=0.1):
    d = {d}
    kl = {kl}
    return pg_loss + beta * kl.mean()
"""

MEANS = [
    "(logp - ref_logp).mean()",
    "(logp - ref_logp).mean(-1)",
    "torch.mean(logp - ref_logp, dim=1)",
    "((logp - ref_logp) * mask).sum(-1) / mask.sum(-1)",
    "((logp - ref_logp) * mask).sum(1) / mask.sum(1).clamp(min=1)",
    "-((ref_logp - logp) * mask).sum(1) / mask.sum(1)",
    "1.0 * ((logp - ref_logp) * mask).sum(1) / mask.sum(1)",
    "masked_mean(logp - ref_logp, mask, dim=-1)",
    "logp.mean(-1) - ref_logp.mean(-1)",
    "jnp.mean(logp - ref_logp)",
]
SUMS = [
    "(logp - ref_logp).sum(-1)",
    "((logp - ref_logp) * mask).sum(dim=1)",
    "torch.sum(logp - ref_logp, -1)",
    "logp.sum(-1) - ref_logp.sum(-1)",
]
BENDS = {"k2": "0.5 * d ** 2", "k3": "torch.exp(-d) + d - 1", "abs": "d.abs()"}


def _setup(code: str):  # type: ignore[no-untyped-def]
    (setup,) = setups(result_of(code))
    return setup


@pytest.mark.parametrize("d", MEANS)
@pytest.mark.parametrize("kl", BENDS.values())
def test_a_bent_mean_is_no_estimator(d: str, kl: str) -> None:
    code = LOSS.format(d=d, kl=kl)
    setup = _setup(code)
    assert (setup.terms[0].estimator, setup.verdict) == ("unknown", "unknown")
    assert "average" in setup.terms[0].facts[0]
    assert not rules_of(code, notes=True)


@pytest.mark.parametrize("d", SUMS)
def test_a_bent_sum_is_one_of_the_sequence(d: str) -> None:
    assert (
        _setup(LOSS.format(d=d, kl=BENDS["k2"])).terms[0].score_weight,
        rules_of(LOSS.format(d=d, kl=BENDS["k2"]), notes=True),
    ) == (
        "the sequence's sum of d",
        [],
    )
    assert _setup(LOSS.format(d=d, kl=BENDS["k2"])).verdict == "unbiased"
    assert "the sequence's sum of d" in _setup(LOSS.format(d=d, kl=BENDS["k3"])).terms[0].score_weight
    assert rules_of(LOSS.format(d=d, kl=BENDS["k3"])) == ["KLA101"]


@pytest.mark.parametrize(
    "average", ["({})", "({}).mean(-1)", "(({}) * mask).sum(-1) / mask.sum(-1)", "masked_mean({}, mask, -1)"]
)
@pytest.mark.parametrize(("estimator", "kl"), BENDS.items())
def test_an_average_of_what_was_bent_is_linear(average: str, estimator: str, kl: str) -> None:
    code = LOSS.format(d="logp - ref_logp", kl=average.format(kl))
    assert told(only(code)) == ("loss", estimator, "pathwise", 1)


def test_below_a_target_nothing_is_told() -> None:
    gate = LOSS.format(d="(logp - ref_logp).mean()", kl="torch.relu(d - target)")
    assert _setup(gate).verdict == "unknown" and not rules_of(gate)
    hinge = LOSS.format(d="logp - ref_logp", kl="torch.relu(d - margin)")
    assert _setup(hinge).verdict == "unknown" and not rules_of(hinge)


REWARD = """
import torch

def masked_mean(x, mask, dim=None):
    return (x * mask).sum(dim) / mask.sum(dim)

def compute_rewards(scores, logp, ref_logp, mask, beta):
    with torch.no_grad():
        kl = {kl}
    return scores - beta * kl
"""

OF_SEQUENCES = [
    "(logp - ref_logp).mean(-1)",
    "(logp - ref_logp).mean(dim=1)",
    "((logp - ref_logp) * mask).sum(-1) / mask.sum(-1)",
    "((logp - ref_logp) * mask).sum(-1) / mask.sum(-1).clamp(min=1)",
    "2 * (0.5 * (logp - ref_logp) * mask).sum(-1) / mask.sum(-1)",
    "masked_mean(logp - ref_logp, mask, dim=-1)",
    "logp.mean(-1) - ref_logp.mean(-1)",
]
OF_ALL = [
    "(logp - ref_logp).mean()",
    "(logp - ref_logp).mean().item()",
    "(logp - ref_logp).sum(1).mean()",
    "((logp - ref_logp) * mask).sum() / mask.sum()",
    "masked_mean(logp - ref_logp, mask)",
    "float((logp - ref_logp).mean())",
]


@pytest.mark.parametrize("kl", OF_SEQUENCES)
def test_a_rewarded_mean_over_the_length(kl: str) -> None:
    code = REWARD.format(kl=kl)
    setup = _setup(code)
    assert (setup.terms[0].estimator, setup.terms[0].score_weight, setup.verdict) == ("k1", "d / length", "biased")
    assert [finding.rule for finding in findings_of(code)] == ["KLA109"]


@pytest.mark.parametrize("kl", OF_ALL)
def test_one_number_for_all(kl: str) -> None:
    code = REWARD.format(kl=kl)
    setup = _setup(code)
    assert (setup.terms[0].estimator, setup.verdict) == ("k1", "unknown")
    assert "every sample gets the same number" in setup.terms[0].facts[0]
    assert not findings_of(code)


@pytest.mark.parametrize(
    "kl", ["logp - ref_logp", "(logp - ref_logp).sum(-1)", "((logp - ref_logp) * mask).sum(dim=1)"]
)
def test_a_rewarded_sum_is_right(kl: str) -> None:
    code = REWARD.format(kl=kl)
    assert (_setup(code).verdict, findings_of(code)) == ("unbiased", ())


@pytest.mark.parametrize("baseline", ["rewards - rewards.mean()", "rewards - rewards.mean(-1, keepdim=True)"])
def test_averages_beyond_the_reward_are_none_of_the_penalty(baseline: str) -> None:
    code = f"""
    def step(scores, logp, ref_logp, beta):
        rewards = scores - beta * (logp - ref_logp).detach().sum(-1)
        advantages = {baseline}
        loss = -(advantages * logp.sum(-1)).mean()
        loss.backward()
    """
    assert told(only(code)) == ("reward", "k1", "pathwise", -1)
    assert _setup(code).verdict == "unbiased"


# --- clamps and clipped weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kl", "weight"),
    [
        ("torch.exp((-d).clamp(max=2.0)) + d - 1", "1 - exp(-d) where d > -2, 1 elsewhere"),
        ("torch.exp(-d).clamp(0.0, 10.0) + d - 1", "1 - exp(-d) where d > -2.3, 1 elsewhere"),
        ("torch.exp(torch.clamp(-d, min=-1.0)) + d - 1", "1 - exp(-d) where d < 1, 1 elsewhere"),
        ("torch.exp(-d.clamp(-1.0, 1.0)) + d.clamp(-1.0, 1.0) - 1", "1 - exp(-d) where -1 < d < 1, 0 elsewhere"),
        ("2 * (torch.exp((-d).clamp(max=2.0)) + d - 1)", "1 - exp(-d) where d > -2, 1 elsewhere"),
        ("3 * (torch.exp((-d).clamp(max=2.0)) + d) / 3 - 1", "1 - exp(-d) where d > -2, 1 elsewhere"),
        ("torch.relu(d)", "1 where d > 0, 0 elsewhere"),
        ("torch.relu(d - 0.5)", "1 where d > 0.5, 0 elsewhere"),
    ],
)
def test_the_slope_beyond_a_clamp(kl: str, weight: str) -> None:
    assert _setup(LOSS.format(d="logp - ref_logp", kl=kl)).terms[0].score_weight == weight


@pytest.mark.parametrize(
    ("kl", "elsewhere"),
    [
        ("torch.exp((ref_logp - logp).clamp(max=1.0)) + (logp - ref_logp) - 1", "another value"),
        ("(logp - ref_logp).clamp(-1.0, 1.0)", "constant"),
    ],
)
def test_the_value_beyond_a_clamp(kl: str, elsewhere: str) -> None:
    assert _setup(REWARD.format(kl=kl)).terms[0].score_weight.endswith(f"{elsewhere} elsewhere")


@pytest.mark.parametrize(
    "clip", ["ratio.clamp(0.8, 1.2)", "torch.clamp(ratio, 1 - 0.2, 1 + 0.2)", "torch.clip(ratio, max=2.0)"]
)
def test_a_clipped_weight_is_exact_only_where_it_is_not_clipped(clip: str) -> None:
    code = LOSS.format(d="logp - ref_logp\n    ratio = (logp - old_logp).exp()", kl=f"{clip} * (torch.exp(-d) + d - 1)")
    assert _setup(code).terms[0].score_weight == "d where the ratio pi/pi_old is not clipped"


def test_a_mean_over_the_vocabulary_divides_by_its_size() -> None:
    code = """
    def compute_loss(pg_loss, logits, ref_logits):
        log_p, log_q = logits.log_softmax(-1), ref_logits.log_softmax(-1)
        return pg_loss + 0.1 * (log_p.exp() * (log_p - log_q)){reduced}
    """
    (term,) = _setup(code.format(reduced=".mean()")).terms
    assert (term.coefficient, "vocabulary" in term.facts[0]) == (None, True)
    (term,) = _setup(code.format(reduced=".sum(-1).mean()")).terms
    assert (term.coefficient, term.facts) == (0.1, ())


# --- what is no estimator but has a known weight ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kl", "weight", "verdict"),
    [
        ("(-d).exp().detach() - 1 + d", "1", "no-regularisation"),
        ("torch.exp(-d).detach() * d", "exp(-d)", "biased"),
        ("d.detach() * d + torch.exp(-d).detach()", "d", "unbiased-per-token"),
        ("F.smooth_l1_loss(logp, ref_logp, reduction='none')", "d where -1 < d < 1, sign(d) elsewhere", "biased"),
        ("F.smooth_l1_loss(logp, ref_logp)", "d where -1 < d < 1, sign(d) elsewhere", "biased"),
        ("nn.SmoothL1Loss()(logp, ref_logp)", "d where -1 < d < 1, sign(d) elsewhere", "biased"),
        ("F.huber_loss(logp, ref_logp, delta=0.5)", "d where -0.5 < d < 0.5, 0.5*sign(d) elsewhere", "biased"),
        ("F.huber_loss(logp, ref_logp, 'none', 2.0)", "d where -2 < d < 2, 2*sign(d) elsewhere", "biased"),
        ("F.mse_loss(logp, ref_logp) / 2", "d", "unbiased-per-token"),
    ],
)
def test_the_weight_decides(kl: str, weight: str, verdict: str) -> None:
    code = LOSS.replace("import torch\n", "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n")
    (term,) = _setup(code.format(d="logp - ref_logp", kl=f"({kl})")).terms
    assert (term.score_weight, term.verdict) == (weight, verdict)


def test_log_cosh_is_seen() -> None:
    formula = only(LOSS.format(d="logp - ref_logp", kl="torch.log(torch.cosh(d))"))
    assert formula.what.samples[0][2] == pytest.approx(math.tanh(formula.what.samples[0][0]))


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        ("(log_p.exp().detach() * (log_p - log_q)).sum(-1)", ("full", "none", "no-gradient")),
        (
            "(log_p.exp().detach() * (torch.exp(log_q - log_p) - 1 + log_p - log_q)).sum(-1)",
            ("unknown", "pathwise", "biased"),
        ),
        ("(log_p.exp() * (log_p - log_q)).sum(-1)", ("full", "pathwise", "unbiased-per-token")),
        ("torch.einsum('btv,btv->bt', log_p.exp(), log_p - log_q)", ("full", "pathwise", "unbiased-per-token")),
        ("torch.einsum('...v,...v', log_p.exp(), log_p - log_q)", None),
    ],
)
def test_sums_over_the_vocabulary(kl: str, expected: tuple[str, str, str] | None) -> None:
    code = f"""
    import torch

    def compute_loss(pg_loss, logits, ref_logits, beta):
        log_p, log_q = logits.log_softmax(-1), ref_logits.log_softmax(-1)
        kl = {kl}
        return pg_loss + beta * kl.mean()
    """
    seen = [(term.estimator, term.gradient, term.verdict) for setup in setups(result_of(code)) for term in setup.terms]
    assert seen == ([expected] if expected else seen)
    assert expected or all(verdict == "unknown" for _, _, verdict in seen)
