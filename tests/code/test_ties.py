"""Settings of a launch and the code that they decide."""

from __future__ import annotations

import pytest

from klaudit.code.ties import called, name_of, parts_of, under
from tests.code.snippets import only
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


@pytest.mark.parametrize(("value", "estimator"), [("kl", "k1"), ("low_var_kl", "k3"), ("mse", "k2")])
def test_a_value_picks_the_variant(value: str, estimator: str) -> None:
    (variant,) = under(only(CODE, FILES), {"kl_loss_type": value})
    assert variant.what.estimator == estimator


def test_other_settings_pick_nothing() -> None:
    formula = only(CODE, FILES)
    assert under(formula, {"kl_coef": 0.1, "lr": 1e-6}) == formula.variants
    assert under(formula, {"kl_loss_type": "no such"}) == ()


@pytest.mark.parametrize(
    ("spelling", "parts"),
    [
        ("self.config['actor'].kl_coef", ("self", "config", "actor", "kl_coef")),
        ("--kl-loss-type", ("kl_loss_type",)),
        ("f(x)[0]", ()),
        ("a.b > 0", ()),
        ("'ref' in batch", ()),
    ],
)
def test_the_parts_of_a_path(spelling: str, parts: tuple[str, ...]) -> None:
    assert parts_of(spelling) == parts


def test_what_is_called() -> None:
    assert called(only(CODE, FILES)) == "kl_penalty()"
