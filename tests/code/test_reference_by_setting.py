"""A setting that says whether the penalty is held against the reference or against the policy of the rollout."""

from __future__ import annotations

import pytest

from tests.code.snippets import findings_of, only, rules_of

CODE = """
import torch
class Actor:
    def update(self, data):
        log_prob = self.forward(data)
        {choice}
        d = log_prob - ref_log_prob
        kl = {kl}
        loss = -(torch.exp(log_prob - data["old_log_probs"]) * data["adv"]).mean() + self.config.kl_coef * kl.mean()
        loss.backward()
"""
CHOICES = {
    "if": """if self.config.iterative:
            ref_log_prob = data["old_log_probs"]
        else:
            ref_log_prob = data["ref_log_prob"]""",
    "expression": """ref_log_prob = data["old_log_probs"] if self.config.iterative else data["ref_log_prob"]""",
    "by default": """ref_log_prob = data["ref_log_prob"]
        if self.config.iterative:
            ref_log_prob = data["old_log_probs"]""",
}


@pytest.mark.parametrize("which", CHOICES)
@pytest.mark.parametrize(
    ("kl", "rule"),
    [("d", "KLA103"), ("torch.exp(-d) + d - 1", "KLA101"), ("torch.exp(d) - d - 1", "KLA302"), ("d.abs()", "KLA105")],
)
def test_the_condition_is_told(which: str, kl: str, rule: str) -> None:
    code = CODE.format(choice=CHOICES[which], kl=kl)
    assert rule in rules_of(code)
    (variant,) = only(code).variants
    assert variant.when == "self.config.iterative = False"
    assert all("when self.config.iterative = False" in finding.message for finding in findings_of(code))


def test_a_choice_that_leaves_no_reference_is_no_condition() -> None:
    code = CODE.format(choice=CHOICES["if"].replace("old_log_probs", "ref_log_prob"), kl="d.abs()")
    assert only(code).variants[0].when == ""


@pytest.mark.parametrize("count", ["lengths", "token_count", "tok_cnt", "mask.sum(-1)"])
def test_log_probabilities_an_answers_length_divides(count: str) -> None:
    code = f"""
    def loss_fn(logps, ref_logps, mask, lengths, token_count, tok_cnt, pg_loss, beta):
        logp, ref_logp = logps / {count}, ref_logps / {count}
        return pg_loss + beta * (logp - ref_logp).mean()
    """
    assert rules_of(code) == ["KLA103"]


@pytest.mark.parametrize(
    "more",
    [
        "if self.aux_loss:\n            loss = loss + self.model.aux",
        "if self.kind == 'a':\n            loss = loss * 1.0 + other\n        elif self.kind == 'b':\n            loss = loss + another",
        "loss = loss + aux if self.aux else loss",
    ],
)
def test_what_else_is_added_to_the_loss_decides_nothing_about_the_penalty(more: str) -> None:
    code = f"""
class Actor:
    def step(self, logp, ref_logp, pg, other, another, aux):
        loss = pg + 0.1 * (logp - ref_logp).abs().mean()
        {more}
        loss.backward()
"""
    formula = only(code)
    assert formula.condition == ""


def test_a_branch_that_drops_the_penalty_decides() -> None:
    code = """
class Actor:
    def step(self, logp, ref_logp, pg):
        loss = pg + 0.1 * (logp - ref_logp).abs().mean()
        if self.plain:
            loss = pg
        loss.backward()
"""
    assert only(code).condition == "not self.plain"
