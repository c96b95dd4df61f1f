"""Defaults of parameters and what callers pass."""

from __future__ import annotations

import pytest

from tests.code.snippets import findings_of, only, rules_of, used

FUNCTION = """
def {name}(logps, ref_logps, adv, beta{annotation} = {default}):
    r = ref_logps - logps
    return (-(logps * adv) + beta * ((-r).expm1() + r)).mean()

def train(batches, cfg, BETA):
    for b in batches:
        {name}(b["logps"], b["ref_logps"], b["adv"]{passed}).backward()
""".replace("((-r).expm1() + r)", "(r.exp() - r - 1)")
CLASS = """
class {name}:
    def __init__(self, beta{annotation} = {default}):
        self.beta = beta

    def forward(self, logps, ref_logps, adv):
        r = ref_logps - logps
        return (-(logps * adv) + self.beta * (r.exp() - r - 1)).mean()

def train(batches, cfg, BETA):
    criterion = {name}({passed})
    for b in batches:
        criterion(b["logps"], b["ref_logps"], b["adv"]).backward()
"""


def _coefficient(code: str) -> float | None:
    formula = only(code)
    value = formula.coefficient(formula.what)
    return None if value is None else round(value, 6)


@pytest.mark.parametrize("default", ["0.0", "0", "0.1"])
@pytest.mark.parametrize("annotation", ["", ": float"])
@pytest.mark.parametrize("passed", ["beta=0.04", "0.04"])
@pytest.mark.parametrize("code", [FUNCTION, CLASS], ids=["function", "class"])
def test_what_every_caller_passes_counts(default: str, annotation: str, passed: str, code: str) -> None:
    text = code.format(
        name="DapoLoss", default=default, annotation=annotation, passed=passed if code is CLASS else f", {passed}"
    )
    assert _coefficient(text) == 0.04
    assert "KLA101" in rules_of(text)


@pytest.mark.parametrize("passed", ["beta=cfg.kl_coef", "beta=BETA", "cfg.kl_coef", "**cfg.loss"])
@pytest.mark.parametrize("code", [FUNCTION, CLASS], ids=["function", "class"])
def test_a_zero_that_a_setting_replaces_is_not_known(passed: str, code: str) -> None:
    text = code.format(name="loss_fn", default="0.0", annotation="", passed=passed if code is CLASS else f", {passed}")
    assert _coefficient(text) is None
    assert "KLA101" in rules_of(text)


@pytest.mark.parametrize("code", [FUNCTION, CLASS], ids=["function", "class"])
def test_a_zero_that_nobody_replaces_stands(code: str) -> None:
    text = code.format(name="loss_fn", default="0.0", annotation="", passed="")
    assert _coefficient(text) == 0
    assert findings_of(text) == ()


@pytest.mark.parametrize("code", [FUNCTION, CLASS], ids=["function", "class"])
def test_an_option_that_every_caller_passes_has_its_default(code: str) -> None:
    text = code.format(
        name="loss_fn", default="0.0", annotation="", passed=", args.kl" if code is FUNCTION else "args.kl"
    )
    options = "parser.add_argument('--kl', default=0.3)\nargs = parser.parse_args()\n"
    assert _coefficient(text + options) == 0.3
    assert _coefficient(text) is None


@pytest.mark.parametrize("passed", ["kind=self.config.kind", "self.config.kind"])
def test_a_text_that_a_setting_replaces_is_not_known(passed: str) -> None:
    code = """
class Trainer:
    def apply(self, rewards, logps, ref_logps, kind="k1"):
        d = logps - ref_logps
        kl = d if kind == "k1" else d ** 2 / 2
        rewards = rewards - self.config.beta * kl
        return rewards
"""
    call = f"""
    def run(self, batch):
        return self.apply(batch.rewards, batch.logps, batch.ref_logps, {passed})
"""
    assert _by_default(code) == {"k1": True, "k2": False}
    assert _by_default(code + call) == {"k1": False, "k2": False}


def _by_default(code: str) -> dict[str, bool]:
    variants = [variant for formula in used(code) for variant in formula.variants]
    return {variant.what.estimator: variant.is_default for variant in variants}


@pytest.mark.parametrize("code", [FUNCTION, CLASS], ids=["function", "class"])
def test_callers_that_do_not_agree_leave_it_open(code: str) -> None:
    text = code.format(
        name="loss_fn", default="0.0", annotation="", passed="beta=0.04" if code is CLASS else ", beta=0.04"
    )
    text += "\ndef other(b):\n    return loss_fn(b.logps, b.ref_logps, b.adv, beta=0.0) if b else loss_fn(beta=0.1)\n"
    assert _coefficient(text) is None


def test_a_choice_that_every_caller_makes() -> None:
    code = """
        def kl_loss(logps, ref_logps, loss, beta, kind="k1"):
            r = logps - ref_logps
            penalty = r if kind == "k1" else 0.5 * r.square()
            return loss + beta * penalty.mean()

        def train(b, loss, cfg):
            kl_loss(b["logps"], b["ref_logps"], loss, cfg.beta, kind="k2").backward()
        """
    assert rules_of(code) == []
    assert rules_of(code.replace(', kind="k2"', "")) == ["KLA103"], "the default"


OTHERS_USES = {
    "another class's method": "class Critic:\n    def loss(self, v, r, c):\n        return (v - r) ** 2\n\ndef train(critic):\n    critic.loss(0, 1, 0).backward()\n",
    "a function of the name": "def loss(v, r, c):\n    return (v - r) ** 2\n\nloss(1, 2, 0)\n",
}


@pytest.mark.parametrize("which", OTHERS_USES)
def test_what_others_of_the_name_are_given_says_nothing(which: str) -> None:
    code = """
class Actor:
    def loss(self, logps, ref_logps, beta=0.1):
        r = ref_logps - logps
        return self.surrogate(logps) + beta * (r.exp() - r - 1)
"""
    assert _coefficient(code + OTHERS_USES[which]) == 0.1


@pytest.mark.parametrize(
    "handed_on",
    ["other = loss_fn", "run(loss_fn)", "functools.partial(loss_fn, beta=0.2)", "REGISTRY = {'grpo': loss_fn}"],
)
def test_a_function_that_is_handed_on_is_called_by_others(handed_on: str) -> None:
    code = FUNCTION.format(name="loss_fn", default="0.1", annotation="", passed=", beta=0") + handed_on + "\n"
    assert _coefficient(code) == 0.1


def test_a_subclass_makes_objects_too() -> None:
    code = CLASS.format(name="Loss", default="0.0", annotation="", passed="") + (
        "\nclass Strict(Loss):\n    def __init__(self):\n        super().__init__(beta=0.3)\n"
    )
    assert _coefficient(code) is None
