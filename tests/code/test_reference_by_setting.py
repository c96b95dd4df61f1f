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
