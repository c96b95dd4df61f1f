"""Findings and set-ups in the words of the model: places, messages, confidence, coefficients."""

from __future__ import annotations

import textwrap

import pytest

from klaudit.code.judge import findings, setups
from klaudit.findings import catalogue
from klaudit.model import Finding
from tests.code.snippets import findings_of, result_of, rules_of

GRPO = """
import torch

class Trainer:
    def __init__(self, beta=0.04):
        self.beta = beta

    def compute_loss(self, model, inputs):
        logps = self._get_logps(model, inputs["ids"])
        with torch.no_grad():
            ref_logps = self._get_logps(self.ref_model, inputs["ids"])
        kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
        ratio = torch.exp(logps - inputs["old_logps"])
        loss = -ratio * inputs["advantages"] + self.beta * kl
        return loss.mean()
"""


def _only(code: str, rule: str) -> Finding:
    (finding,) = [finding for finding in findings_of(code) if finding.rule == rule]
    return finding


def test_a_finding_quotes_the_formula_and_shows_the_weights() -> None:
    finding = _only(GRPO, "KLA101")
    assert (finding.span.line, finding.severity, finding.confidence) == (12, "warning", "high")
    for part in (
        "k3 in the loss",
        "self.beta = 0.04",
        "`torch.exp(ref_logps - logps)",
        "log pi_ref = ",
        "1 - exp(-d)",
        "w(d) = d",
    ):
        assert part in finding.message
    assert "@" not in finding.message
    assert finding.why and finding.fix.title
    lines = [evidence.line or 0 for evidence in finding.related]
    assert lines == sorted(lines) and {12, 14, 15} <= set(lines)


def test_the_span_is_the_formula_byte_for_byte() -> None:
    data = GRPO.encode()
    finding = _only(GRPO, "KLA101")
    text = "torch.exp(ref_logps - logps) - (ref_logps - logps) - 1"
    assert data[finding.span.start : finding.span.end].decode() == text


def test_the_wrong_sign_is_shown_where_the_penalty_joins() -> None:
    finding = _only(GRPO.replace("+ self.beta * kl", "- self.beta * kl"), "KLA301")
    assert (finding.span.line, finding.severity) == (14, "error")
    assert "subtracted from the loss" in finding.message


def test_a_swapped_ratio_is_shown_where_it_is_taken() -> None:
    code = GRPO.replace(
        "kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1",
        "log_ratio = logps - ref_logps\n        kl = torch.exp(log_ratio) - log_ratio - 1",
    )
    assert _only(code, "KLA302").span.line == 12
    assert "KLA101" not in rules_of(code)


def test_identities_survive_what_moves_the_line_and_nothing_else() -> None:
    first, second = _only(GRPO, "KLA101"), _only("# a comment\n" + GRPO, "KLA101")
    assert first.identity == second.identity
    other = GRPO.replace("class Trainer", "class Other")
    assert _only(other, "KLA101").identity != first.identity


def test_findings_come_in_the_order_of_the_file() -> None:
    code = GRPO + textwrap.dedent(GRPO).replace("class Trainer", "class Other")
    starts = [finding.span.start for finding in findings_of(code)]
    assert starts == sorted(starts) and len(set(starts)) == 2


def test_a_finding_has_its_texts_from_the_catalogue() -> None:
    finding = _only(GRPO, "KLA101")
    entry = catalogue.entry("k3-in-loss")
    assert (finding.name, finding.severity, finding.why) == (entry.name, entry.severity, entry.summary)
    assert finding.fix.title and entry.fix.startswith(finding.fix.title)


@pytest.mark.parametrize("beta", ["0", "0.0", "-0.0"])
def test_a_penalty_that_is_off_is_no_finding(beta: str) -> None:
    assert findings_of(GRPO.replace("0.04", beta) + "\ntrainer = Trainer()\n") == ()


def test_a_zero_in_a_constructor_that_nobody_is_seen_to_call_may_be_replaced() -> None:
    code = GRPO.replace("0.04", "0.0")
    assert "KLA101" in [finding.rule for finding in findings_of(code)]
    (setup,) = setups(result_of(code))
    assert (setup.terms[0].coefficient, setup.terms[0].active) == (None, None)


CHOICE = """
class Trainer:
    def loss(self, logps, old_logps, ref_logps, adv):
        d = logps - ref_logps
        if self.config.kl_type == "k2":
            kl = d ** 2 / 2
        elif self.config.kl_type == "k3":
            kl = (-d).exp() - 1 + d
        else:
            raise ValueError(self.config.kl_type)
        return (-(logps - old_logps).exp() * adv + self.config.beta * kl).mean()
"""


def test_a_library_that_offers_a_right_choice_is_no_finding() -> None:
    assert rules_of(CHOICE) == []


def test_none_of_the_choices_is_right() -> None:
    code = CHOICE.replace("d ** 2 / 2", "d.abs()")
    assert rules_of(code) == ["KLA101", "KLA105"]
    assert {finding.confidence for finding in findings_of(code) if finding.rule == "KLA101"} == {"medium"}
    assert "self.config.kl_type = k3" in _only(code, "KLA101").message


def test_a_setup_keeps_what_a_setting_decides_open() -> None:
    (setup,) = setups(result_of(CHOICE))
    assert (setup.kind, setup.symbol, setup.verdict) == ("code", "Trainer.loss", "unknown")
    assert [(term.estimator, term.active) for term in setup.terms] == [("k2", None), ("k3", None)]
    assert [term.facts for term in setup.terms] == [
        ("k2 when self.config.kl_type = k2",),
        ("k3 when self.config.kl_type = k3",),
    ]


def test_a_setup_of_a_trainer() -> None:
    (setup,) = setups(result_of(GRPO))
    (term,) = setup.terms
    assert (term.placement, term.estimator, term.gradient, term.coefficient) == ("loss", "k3", "pathwise", 0.04)
    assert (term.active, term.verdict, term.score_weight) == (True, "biased", "1 - exp(-d)")
    assert setup.span is not None and setup.span.line == 12


def test_a_metric_is_an_inactive_term() -> None:
    code = GRPO.replace(" + self.beta * kl", "").replace(
        "return loss", 'self.metrics["kl"].append(kl.mean().item())\n        return loss'
    )
    (setup,) = setups(result_of(code))
    assert [(term.placement, term.active, term.why_inactive) for term in setup.terms] == [
        ("metric", False, "only reported")
    ]
    assert findings(result_of(code)) == ()


def test_a_negative_term_is_a_negative_coefficient() -> None:
    (setup,) = setups(result_of(GRPO.replace("+ self.beta * kl", "- self.beta * kl")))
    assert setup.terms[0].coefficient == -0.04


def test_what_is_written_elsewhere_is_shown_where_this_file_leads_there() -> None:
    from klaudit.code.analyse import analyse
    from klaudit.readers.source import Source

    helper = "import torch\ndef kl_of(p, q):\n    return torch.log(p.softmax(-1)).gather(-1, ids) - q\n"
    code = "from helper import kl_of\ndef loss_fn(logits, ref_logps, old_logps, adv):\n    return (kl_of(logits, ref_logps) ** 2).mean()\n"
    load = {"helper.py": Source("helper.py", helper.encode())}.get
    for finding in findings(analyse(Source("main.py", code.encode()), load=load)):
        assert finding.span.path == "main.py"
