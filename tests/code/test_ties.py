"""Settings of a launch and the code that they decide."""

from __future__ import annotations

import pytest

from klaudit.code.ties import name_of, ties, told, under
from tests.code.snippets import only, result_of
from tests.code.test_following import ACTOR, KL

CODE = ACTOR.format(imported="kl_penalty", call="kl_penalty(log_prob, ref_log_prob, self.config.kl_loss_type)")
FILES = {"pkg/algos.py": KL}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("self.config.actor.kl_loss_type", "kl_loss_type"),
        ("cfg['kl_coef']", "kl_coef"),
        ("self.kl_ctrl.value", "kl_ctrl"),
        ("beta", "beta"),
        ("(a / b)", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_setting(spelling: str, name: str) -> None:
    assert name_of(spelling) == name


def test_settings_lead_to_the_formulas_they_decide() -> None:
    tied = ties(result_of(CODE, FILES))
    span = only(CODE, FILES).span
    for name in ("kl_loss_type", "kl_loss_coef", "use_kl_loss"):
        assert [formula.span for formula in tied[name]] == [span]
    assert "log_prob" not in tied


@pytest.mark.parametrize(("value", "estimator"), [("kl", "k1"), ("low_var_kl", "k3"), ("mse", "k2")])
def test_a_value_picks_the_variant(value: str, estimator: str) -> None:
    (variant,) = under(only(CODE, FILES), {"kl_loss_type": value})
    assert variant.what.estimator == estimator


def test_other_settings_pick_nothing() -> None:
    formula = only(CODE, FILES)
    assert under(formula, {"kl_coef": 0.1, "lr": 1e-6}) == formula.variants
    assert under(formula, {"kl_loss_type": "no such"}) == ()


def test_the_sentence() -> None:
    formula = only(CODE, FILES)
    assert formula.joined is not None
    assert told(formula, "kl_loss_type", "low_var_kl") == (
        f"kl_loss_type=low_var_kl reaches `kl_penalty()` at trainer.py:{formula.span.line} (k3) "
        f"and enters the loss at trainer.py:{formula.joined.line}"
    )
