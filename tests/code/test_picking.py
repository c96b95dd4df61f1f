"""The sampled token's entry, however it is picked: k3 of it is k3, and a whole vocabulary stays one."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of, told

LOSS = """
import jax
import jax.numpy as jnp
import optax
import torch
import torch.nn as nn
import torch.nn.functional as F

{top}

class Trainer:
    def __init__(self):
        self.log_softmax = nn.LogSoftmax(dim=-1)
        self.nll = nn.CrossEntropyLoss(reduction="none")

    def compute_loss(self, logits, ref_logits, ids, adv, beta):
        row = torch.arange(ids.size(0))
        logp = {policy}
        ref = {reference}
        d = ref - logp
        return -(logp * adv).mean() + beta * ({kl}).mean()
"""
TOPS = "lsm = torch.nn.LogSoftmax(-1)\nce = nn.CrossEntropyLoss(reduction='none')"

PICKED = [
    "torch.log_softmax({0}, -1)[row, ids]",
    "{0}.log_softmax(-1)[torch.arange(ids.size(0))[:, None], torch.arange(ids.size(1))[None], ids]",
    "F.log_softmax({0}, dim=-1)[..., ids]",
    "jax.nn.log_softmax({0})[jnp.arange(8), ids]",
    "F.softmax({0}, dim=-1)[row, ids].log()",
    "({0} - {0}.logsumexp(-1, keepdim=True)).gather(-1, ids[..., None])",
    "(F.log_softmax({0}, -1) * F.one_hot(ids, 100)).sum(-1)",
    "jnp.sum(jax.nn.one_hot(ids, 100) * jax.nn.log_softmax({0}), axis=-1)",
    "torch.sum(F.one_hot(ids, 100).float() * {0}.log_softmax(-1), dim=-1)",
    "torch.einsum('btv,btv->bt', {0}.log_softmax(-1), F.one_hot(ids, 100).float())",
    "lsm({0}).gather(-1, ids)",
    "self.log_softmax({0}).gather(-1, ids)",
    "nn.LogSoftmax(dim=-1)({0}).gather(-1, ids)",
    "-ce({0}.transpose(1, 2), ids)",
    "-self.nll({0}.transpose(1, 2), ids)",
    "-F.nll_loss(F.log_softmax({0}, -1), ids, reduction='none')",
    "-optax.softmax_cross_entropy_with_integer_labels({0}, ids)",
]


@pytest.mark.parametrize("form", PICKED)
def test_however_the_token_is_picked(form: str) -> None:
    code = LOSS.format(
        top=TOPS, policy=form.format("logits"), reference=form.format("ref_logits"), kl="torch.exp(d) - d - 1"
    )
    assert told(only(code)) == ("loss", "k3", "pathwise", 1)


@pytest.mark.parametrize("form", PICKED[:3])
def test_samples_weighted_by_their_probability(form: str) -> None:
    code = LOSS.format(
        top="", policy=form.format("logits"), reference=form.format("ref_logits"), kl="logp.exp() * (logp - ref)"
    )
    assert rules_of(code) == ["KLA306"]


AFTER = """
import torch
import torch.nn.functional as F

def compute_loss(logits, ref_logits, ids, pg_loss, beta):
    log_p, log_q = F.log_softmax(logits, -1), F.log_softmax(ref_logits, -1)
    whole = {whole}
    kl = {picked}
    return pg_loss + beta * kl.mean()
"""


@pytest.mark.parametrize(
    "picked", ["torch.gather(whole, -1, ids)", "whole[..., ids]", "(whole * F.one_hot(ids)).sum(-1)"]
)
@pytest.mark.parametrize(
    ("whole", "estimator"),
    [
        ("log_p - log_q", "k1"),
        ("torch.exp(log_q - log_p) - (log_q - log_p) - 1", "k3"),
        ("0.5 * (log_p - log_q).square()", "k2"),
        ("(log_p - log_q).abs()", "abs"),
    ],
)
def test_picked_after_the_arithmetic(whole: str, estimator: str, picked: str) -> None:
    assert told(only(AFTER.format(whole=whole, picked=picked))) == ("loss", estimator, "pathwise", 1)


def test_an_entry_of_the_full_divergence_is_no_divergence() -> None:
    code = AFTER.format(whole="log_p.exp() * (log_p - log_q)", picked="whole.gather(-1, ids)")
    assert "KLA306" in rules_of(code)


@pytest.mark.parametrize(
    "index",
    [
        "[torch.arange(8), last_pos]",
        "[:, -1]",
        "[:, :-1]",
        "[mask]",
        "[:, start:end]",
        "[mask.bool()]",
        "[batch_idx, seq_len - 1]",
    ],
)
def test_an_index_of_positions_leaves_the_vocabulary(index: str) -> None:
    code = f"""
    import torch
    import torch.nn.functional as F

    def compute_loss(logits, ref_logits, mask, pg_loss, beta):
        log_p, log_q = F.log_softmax(logits{index}, -1), F.log_softmax(ref_logits{index}, -1)
        return pg_loss + beta * (log_p.exp() * (log_p - log_q)).sum(-1).mean()
    """
    assert told(only(code)) == ("loss", "full", "pathwise", 1)


SORTED = [
    ("top, idx = log_p.sort(-1, descending=True)\n    top, idx = top[..., :k], idx[..., :k]", True),
    ("idx = torch.argsort(log_p, dim=-1, descending=True)[:, :, :100]\n    top = log_p.gather(-1, idx)", True),
    ("idx = torch.sort(log_p, descending=True).indices[..., :50]\n    top = log_p.gather(-1, idx)", True),
    ("idx = jnp.argsort(log_p, axis=-1)[..., -20:]\n    top = jnp.take_along_axis(log_p, idx, axis=-1)", True),
    ("top, idx = log_p.topk(k, dim=-1)", True),
    ("top, idx = log_p.sort(-1, descending=True)", False),
    ("idx = log_p.argsort(-1)\n    top = log_p.gather(-1, idx)", False),
]


@pytest.mark.parametrize(("ordered", "is_cut"), SORTED)
def test_the_likeliest_entries_of_what_was_sorted(ordered: str, is_cut: bool) -> None:
    code = f"""
import torch
import jax.numpy as jnp

def compute_loss(pg_loss, logits, ref_logits, beta, k):
    log_p, log_q = logits.log_softmax(-1), ref_logits.log_softmax(-1)
    {ordered}
    kl = (top.exp() * (top - log_q.gather(-1, idx))).sum(-1)
    return pg_loss + beta * kl.mean()
"""
    formula = only(code)
    assert (formula.what.direction, formula.what.truncated) == ("pi||ref", is_cut)
