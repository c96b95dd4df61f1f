"""What `klaudit explain` says of a line of code."""

from __future__ import annotations

from klaudit.code.explain import explain
from tests.code.snippets import result_of
from tests.code.test_following import ACTOR, KL
from tests.code.test_judge import CHOICE, GRPO


def test_the_reasoning_step_by_step() -> None:
    text = explain(result_of(GRPO), 12)
    for part in (
        "in Trainer.compute_loss: part of a loss",
        "added with coefficient self.beta = 0.04",
        "confidence high",
        "log pi_ref",
        "computed by self.ref_model",
        "exp(log pi_ref - log pi) - (log pi_ref - log pi) - 1",
        "is k3",
        "1 - exp(-d)",
        "verdict: biased",
        "trainer.py:14",
    ):
        assert part in text, part
    assert text.index("trainer.py:12") < text.rindex("trainer.py:15")


def test_the_table_and_the_plot() -> None:
    lines = explain(result_of(GRPO), 12).splitlines()
    (row,) = [line for line in lines if line.split()[:1] == ["1.20"]]
    assert row.split() == ["1.20", "0.5012", "0.6988", "1.20"]
    plot = [line for line in lines if " |" in line]
    assert len(plot) == 11
    assert any("*" in line for line in plot) and any("." in line.split("|")[1] for line in plot)


def test_any_line_of_the_formulas_way_will_do() -> None:
    result = result_of(GRPO)
    assert explain(result, 14) == explain(result, 12)


def test_every_choice_is_explained() -> None:
    text = "".join(explain(result_of(CHOICE), line) for line in (6, 8))
    assert "when self.config.kl_type = k2:" in text
    assert "when self.config.kl_type = k3:" in text
    assert text.index("is k2") < text.index("is k3")


def test_a_line_without_a_formula_says_where_they_are() -> None:
    text = explain(result_of(GRPO), 3)
    assert "trainer.py:3: no formula" in text
    assert "trainer.py:12" in text


def test_a_file_without_a_formula() -> None:
    assert explain(result_of("x = 1\n"), 1) == "trainer.py:1: no formula that compares log pi with log pi_ref\n"


def test_a_helper_in_another_file_is_named() -> None:
    code = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, 'low_var_kl')")
    result = result_of(code, {"pkg/algos.py": KL})
    (formula,) = [formula for formula in result.formulas if formula.placement == "loss"]
    assert f"pkg/algos.py:{formula.home.line}" in explain(result, formula.span.line)


def test_a_reward_shows_its_value_as_weight() -> None:
    code = """
def compute_rewards(scores, logp, ref_logp, beta):
    return scores - beta * (logp - ref_logp)
"""
    text = explain(result_of(code), 3)
    assert "part of a reward" in text and "subtracted with coefficient beta" in text
    (row,) = [line for line in text.splitlines() if line.split()[:1] == ["1.20"]]
    assert row.split() == ["1.20", "1.2000", "1.2000", "1.20"]
