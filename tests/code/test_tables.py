"""Functions found in tables, bound in advance, inherited, chosen by match, and what cannot be followed: handled or unknown, never wrong."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import only, result_of, rules_of

TABLE = """
import functools
import torch

TABLE = {}

def register(name):
    def enter(function):
        TABLE[name] = function
        return function
    return enter

@register("square")
def square(d):
    return d ** 2 / 2

@register("low")
def low(d):
    return torch.exp(-d) + d - 1

def scaled(values, scale):
    return scale * values.mean()

half = functools.partial(scaled, scale=0.5)
"""
USES = """
from tables import TABLE, half, low

def compute_loss(pg_loss, logp, ref_logp, beta=0.1):
    d = logp - ref_logp
    return pg_loss + beta * {call}
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('TABLE["square"](d).mean()', ("k2", 0.1)),
        ('TABLE["low"](d).mean()', ("k3", 0.1)),
        ('TABLE.get("square")(d).mean()', ("k2", 0.1)),
        ("half(low(d))", ("k3", 0.05)),
        ("half(TABLE['square'](d))", ("k2", 0.05)),
    ],
)
def test_tables_and_partial_functions_of_another_file(call: str, expected: tuple[str, float]) -> None:
    formula = only(USES.format(call=call), {"tables.py": TABLE})
    assert (formula.what.estimator, formula.coefficient(formula.what)) == expected
    assert formula.confidence == "high"


@pytest.mark.parametrize(
    "call", ["elsewhere(d).mean()", 'elsewhere["k3"](d).mean()', "vmap(ours)(d).mean()", "self.f(d).mean()"]
)
def test_what_goes_through_unknown_code_is_no_finding(call: str) -> None:
    code = USES.replace("import TABLE, half, low", "import elsewhere, vmap, ours").format(call=call)
    assert rules_of(code, notes=True) == []
    for setup in setups(result_of(code)):
        assert (setup.verdict, setup.terms[0].estimator) == ("unknown", "unknown")


HEAD = """
import functools
import torch

class Base:
    def estimate(self, logp, ref_logp):
        d = logp - ref_logp
        return torch.exp(-d) + d - 1

def scaled(factor):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return factor * function(*args, **kwargs)
        return wrapper
    return decorate

@scaled(0.5)
def halved(logp, ref_logp):
    d = logp - ref_logp
    return torch.exp(-d) + d - 1

@torch.no_grad()
def lost(logp, ref_logp):
    d = logp - ref_logp
    return torch.exp(-d) + d - 1

@torch.compile(dynamic=True)
def compiled(logp, ref_logp):
    d = logp - ref_logp
    return torch.exp(-d) + d - 1

def early(logp, ref_logp, kind="k2"):
    d = logp - ref_logp
    if kind == "k1":
        return d
    if kind == "k2":
        return d ** 2 / 2
    return torch.exp(-d) + d - 1

def matched(logp, ref_logp, kind):
    d = logp - ref_logp
    match kind:
        case "k1":
            return d
        case "k2" | "mse":
            return 0.5 * d.square()
        case _:
            raise ValueError(kind)

class Trainer(Base):
    def estimate(self, logp, ref_logp):
        return super().estimate(logp, ref_logp)

    def loss(self, pg_loss, logp, ref_logp):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "estimator", "coefficient"),
    [
        ("return pg_loss + 0.1 * self.estimate(logp, ref_logp).mean()", "k3", 0.1),
        ("return pg_loss + 0.1 * compiled(logp, ref_logp).mean()", "k3", 0.1),
        ("return pg_loss + 0.1 * early(logp, ref_logp).mean()", "k2", 0.1),
        ("return pg_loss + 0.1 * early(logp, ref_logp, 'k1').mean()", "k1", 0.1),
        ("return pg_loss + 0.1 * early(logp, ref_logp, kind='k9').mean()", "k3", 0.1),
        ("return pg_loss + 0.1 * matched(logp, ref_logp, 'mse').mean()", "k2", 0.1),
        ("return pg_loss + 0.1 * ((d := logp - ref_logp) ** 2 / 2).mean()", "k2", 0.1),
        ("return pg_loss + 0.1 * sum((a - b) ** 2 / 2 for a, b in zip(logp, ref_logp))", "k2", 0.1),
        ("return pg_loss + 0.1 * torch.stack([(a - b) ** 2 / 2 for a, b in zip(logp, ref_logp)]).mean()", "k2", 0.1),
        ("return pg_loss + 0.1 * torch.vmap(lambda a, b: (a - b) ** 2 / 2)(logp, ref_logp).mean()", "k2", 0.1),
        ("return pg_loss + 0.1 * functools.reduce(torch.add, [(logp - ref_logp) ** 2 / 2])", "k2", 0.1),
    ],
)
def test_a_form_is_seen_through(body: str, estimator: str, coefficient: float) -> None:
    result = result_of(HEAD.replace("{body}", body))
    (formula,) = (formula for formula in result.formulas if formula.placement == "loss")
    assert formula.what.estimator == estimator
    assert formula.coefficient(formula.what) == pytest.approx(coefficient)
    assert not formula.detached


def test_a_decorator_without_gradient_counts() -> None:
    assert "KLA303" in rules_of(HEAD.replace("{body}", "return pg_loss + 0.1 * lost(logp, ref_logp).mean()"))


def test_nothing_is_claimed_of_what_a_decorator_calculates_with() -> None:
    result = result_of(HEAD.replace("{body}", "return pg_loss + 0.1 * halved(logp, ref_logp).mean()"))
    assert not [formula for formula in result.formulas if formula.placement == "loss" and not formula.external]
