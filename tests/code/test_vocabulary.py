"""Divergences over the whole vocabulary: which of the two they are, and what kl_div's arguments make of them."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import findings_of, only, result_of, rules_of

LOSS = """
import torch
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence

class Trainer:
    def compute_loss(self, batch, adv, old_logp):
        logits = self.model(batch["ids"]).logits
        with torch.no_grad():
            ref_logits = self.ref_model(batch["ids"]).logits
        log_p, log_q = logits.log_softmax(-1), F.log_softmax(ref_logits, dim=-1)
        logp = log_p.gather(-1, batch["ids"].unsqueeze(-1)).squeeze(-1)
        {kl}
        return (-(logp - old_logp).exp() * adv + self.beta * kl).mean()
"""

# the text in place of {kl} -> the direction, rules at or above a warning
FORMS: dict[str, tuple[str, str, list[str]]] = {
    "by hand": ("kl = (log_p.exp() * (log_p - log_q)).sum(-1)", "pi||ref", []),
    "by hand with softmax": ("kl = (logits.softmax(-1) * (log_p - log_q)).sum(dim=-1)", "pi||ref", []),
    "cross-entropy and entropy": (
        "p = log_p.exp()\n        kl = -(p * log_q).sum(-1) + (p * log_p).sum(-1)",
        "pi||ref",
        [],
    ),
    "by logsumexp": (
        "lp = logits - torch.logsumexp(logits, dim=-1, keepdim=True)\n        kl = (lp.exp() * (lp - log_q)).sum(-1)",
        "pi||ref",
        [],
    ),
    "distributions": ("kl = kl_divergence(Categorical(logits=logits), Categorical(logits=ref_logits))", "pi||ref", []),
    "distributions by keyword": (
        "kl = torch.distributions.kl_divergence(\n            q=Categorical(logits=ref_logits), p=Categorical(logits=logits))",
        "pi||ref",
        [],
    ),
    "distributions the other way": (
        "kl = kl_divergence(Categorical(logits=ref_logits), Categorical(logits=logits))",
        "ref||pi",
        ["KLA105"],
    ),
    "forward by hand": ("kl = (log_q.exp() * (log_q - log_p)).sum(-1)", "ref||pi", ["KLA105"]),
    "kl_div with log_target": (
        "kl = F.kl_div(log_q, log_p, log_target=True, reduction='none').sum(-1)",
        "pi||ref",
        [],
    ),
    "kl_div with a probability": ("kl = F.kl_div(log_q, log_p.exp(), reduction='none').sum(-1)", "pi||ref", []),
    "kl_div the wrong way round": (
        "kl = F.kl_div(log_p, log_q, log_target=True, reduction='none').sum(-1)",
        "ref||pi",
        ["KLA308"],
    ),
    "kl_div the wrong way round with a probability": (
        "kl = F.kl_div(log_p, ref_logits.softmax(-1), reduction='none').sum(-1)",
        "ref||pi",
        ["KLA308"],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_over_the_vocabulary(name: str) -> None:
    text, direction, rules = FORMS[name]
    code = LOSS.replace("{kl}", text)
    formula = only(code)
    assert (formula.placement, formula.what.direction) == ("loss", direction)
    assert rules_of(code) == rules


TOP = [
    "top, at = log_p.topk(20, -1)",
    "top, at = torch.topk(log_p, k=20, dim=-1)",
    "best = log_p.topk(20)\n        top, at = best.values, best.indices",
]


@pytest.mark.parametrize("picked", TOP)
def test_over_the_likeliest_entries(picked: str) -> None:
    code = LOSS.replace("{kl}", f"{picked}\n        kl = (top.exp() * (top - log_q.gather(-1, at))).sum(-1)")
    _is_truncated(code, "pi||ref", "KLA105")


# the text in place of {kl} -> the direction
TRUNCATED: dict[str, tuple[str, str]] = {
    "renormalised": (
        "at = logits.topk(20, -1).indices\n        p = logits.gather(-1, at).log_softmax(-1)\n"
        "        q = ref_logits.gather(-1, at).log_softmax(-1)\n        kl = (p.exp() * (p - q)).sum(-1)",
        "pi||ref",
    ),
    "the entries of the reference": (
        "top, at = log_q.topk(20, -1)\n        p = log_p.gather(-1, at)\n        kl = (p.exp() * (p - top)).sum(-1)",
        "pi||ref",
    ),
    "the other direction": (
        "top, at = log_q.topk(20, -1)\n        kl = (top.exp() * (top - log_p.gather(-1, at))).sum(-1)",
        "ref||pi",
    ),
    "indices of a batch": (
        "at = batch['topk_indices']\n        p = log_p.gather(-1, at)\n"
        "        kl = (p.exp() * (p - log_q.gather(-1, at))).sum(-1)",
        "pi||ref",
    ),
    "log-probabilities of a batch": (
        "p = log_p.gather(-1, batch['top_k_ids'])\n        kl = (p.exp() * (p - batch['ref_topk_logprobs'])).sum(-1)",
        "pi||ref",
    ),
    "kl_div": (
        "top, at = log_p.topk(20, -1)\n"
        "        kl = F.kl_div(log_q.gather(-1, at), top, log_target=True, reduction='none').sum(-1)",
        "pi||ref",
    ),
}


@pytest.mark.parametrize("which", TRUNCATED)
def test_a_truncated_sum_is_never_the_full_one(which: str) -> None:
    text, direction = TRUNCATED[which]
    _is_truncated(LOSS.replace("{kl}", text), direction, "KLA105")


def test_a_truncated_sum_in_the_reward() -> None:
    code = """
    def shaped_rewards(self, batch, rewards):
        log_p = self.model(batch["ids"]).logits.log_softmax(-1).detach()
        log_q = self.ref_model(batch["ids"]).logits.log_softmax(-1)
        top, at = log_p.topk(20, -1)
        return rewards - self.beta * (top.exp() * (top - log_q.gather(-1, at))).sum(-1)
    """
    _is_truncated(code, "pi||ref", "KLA104")


def _is_truncated(code: str, direction: str, rule: str) -> None:
    what = only(code).what
    assert (what.estimator, what.direction, what.truncated) == ("unknown", direction, True)
    (setup,) = setups(result_of(code))
    (term,) = (each for each in setup.terms if each.active is not False)
    assert (term.estimator, term.verdict, setup.verdict) == ("unknown", "biased", "biased")
    assert term.score_weight.startswith("sum over the top-k entries of the vocabulary of")
    assert any("biased by the tail" in fact for fact in term.facts)
    (finding,) = (each for each in findings_of(code) if each.rule == rule)
    assert "truncated to the top-k entries of the vocabulary" in finding.message
    assert "without the tail of the vocabulary" in finding.message


def test_the_whole_vocabulary_sorted_by_the_way_is_the_full_sum() -> None:
    """Top-k taken for the logs beside it changes nothing."""
    code = LOSS.replace("{kl}", "shown = log_p.topk(5, -1)\n        kl = (log_p.exp() * (log_p - log_q)).sum(-1)")
    assert (only(code).what.estimator, only(code).what.truncated) == ("full", False)


MISTAKES: dict[str, tuple[str, str]] = {
    "probabilities first": ("kl = F.kl_div(ref_logits.softmax(-1), logits.softmax(-1), reduction='none').sum(-1)", "first argument"),
    "log target undeclared": ("kl = F.kl_div(log_q, log_p, reduction='none').sum(-1)", "without log_target=True"),
    "probability declared as log": (
        "kl = F.kl_div(log_q, log_p.exp(), log_target=True, reduction='none').sum(-1)",
        "log_target=True with",
    ),
    "averaged over the vocabulary": ("kl = F.kl_div(log_q, log_p, log_target=True, reduction='mean')", "batchmean"),
    "averaged by default": ("kl = F.kl_div(log_q, log_p, log_target=True)", "batchmean"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_what_kl_div_is_given(name: str) -> None:
    text, told = MISTAKES[name]
    (finding,) = [finding for finding in findings_of(LOSS.replace("{kl}", text)) if finding.rule == "KLA308"]
    assert told in finding.message


def test_a_log_of_a_softmax_is_noted_where_it_stands() -> None:
    code = LOSS.replace("log_p, log_q = logits.log_softmax(-1)", "log_p, log_q = torch.log(logits.softmax(-1))")
    code = code.replace("{kl}", "kl = 0.5 * (logp - log_q.gather(-1, batch['ids'].unsqueeze(-1)).squeeze(-1)) ** 2")
    assert "KLA307" in rules_of(code, notes=True)
    assert only(code).what.estimator == "k2"


def test_kl_div_of_sampled_tokens_is_no_kl() -> None:
    code = LOSS.replace(
        "{kl}",
        "ref_logp = log_q.gather(-1, batch['ids'].unsqueeze(-1)).squeeze(-1)\n"
        "        kl = F.kl_div(ref_logp, logp, log_target=True, reduction='none')",
    )
    assert "KLA306" in rules_of(code)


@pytest.mark.parametrize(
    "text",
    [
        "kl = F.kl_div(student_log_p, teacher_log_p, log_target=True)",
        "kl = kl_divergence(Normal(mu, std), Normal(0, 1))",
        "kl = kl_divergence(self.posterior(z), self.prior(z)).mean()",
    ],
)
def test_other_divergences_are_none_of_ours(text: str) -> None:
    assert rules_of(LOSS.replace("{kl}", text), notes=True) == []
