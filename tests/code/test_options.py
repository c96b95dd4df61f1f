"""Coefficients that a file declares itself: options of its command line, fields of its configuration classes."""

from __future__ import annotations

import pytest

from klaudit.code.judge import setups
from tests.code.snippets import only, result_of

SCRIPT = """
import argparse
import torch

def train(batch{parameter}):
    d = batch.ref_logp - batch.logp
    loss = batch.pg + {owner}.{name} * (torch.exp(d) - d - 1).mean()
    loss.backward()

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument({flags}, type=float{default})
    {bound} = parser.{parse}()
    train(load(){given})
"""


@pytest.mark.parametrize(
    ("name", "flags", "default", "number"),
    [
        ("kl_coef", "'--kl_coef'", ", default=0.02", 0.02),
        ("kl_coef", "'-k', '--kl-coef'", ", default=0.02", 0.02),
        ("beta", "'--kl', dest='beta'", ", default=1", 1.0),
        ("beta", "'--beta'", "", None),
        ("beta", "'--beta'", ", default=0.0", None),
        ("beta", "'--beta'", ", default=DEFAULT", None),
        ("beta", "'--other'", ", default=0.1", None),
    ],
)
@pytest.mark.parametrize("parameter", ["", ", args"])
def test_an_option_of_the_command_line(
    name: str, flags: str, default: str, number: float | None, parameter: str
) -> None:
    code = SCRIPT.format(
        name=name,
        flags=flags,
        default=default,
        parameter=parameter,
        given=parameter,
        owner="args",
        bound="args",
        parse="parse_args",
    )
    formula = only(code)
    assert formula.coefficient(formula.what) == (None if number is None else pytest.approx(number))
    (setup,) = setups(result_of(code))
    assert setup.terms[0].active is (None if number is None else True)


@pytest.mark.parametrize(
    ("bound", "owner", "number"), [("opts, rest", "opts", 0.3), ("rest, opts", "opts", None), ("opts", "cfg", None)]
)
def test_only_what_the_parser_gives(bound: str, owner: str, number: float | None) -> None:
    code = SCRIPT.format(
        name="beta",
        flags="'--beta'",
        default=", default=0.3",
        parameter="",
        given="",
        owner=owner,
        bound=bound,
        parse="parse_known_args",
    )
    formula = only(code)
    assert formula.coefficient(formula.what) == (None if number is None else pytest.approx(number))


FIELD = """
import torch
from dataclasses import dataclass, field
from typing import Optional

@dataclass
class Config:
    beta: float = {value}

{code}
"""
USES = {
    "a parameter": "def loss_fn(logp, ref_logp, pg_loss, cfg: {annotation}):\n    return pg_loss + cfg.beta * (logp - ref_logp).abs()",
    "kept by an object": (
        "class Trainer:\n    def __init__(self, cfg: {annotation}):\n        self.beta = cfg.beta\n\n"
        "    def loss_fn(self, logp, ref_logp, pg_loss):\n        return pg_loss + self.beta * (logp - ref_logp).abs()"
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("annotation", ["Config", "'Config'", "Optional[Config]", "Config | None"])
@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0.04", 0.04),
        ("field(default=0.04, metadata={'help': 'x'})", 0.04),
        ("-0.1", -0.1),
        ("0.0", None),
        ("DEFAULT", None),
    ],
)
def test_a_field_of_an_annotated_class(use: str, annotation: str, value: str, number: float | None) -> None:
    formula = only(FIELD.format(value=value, code=USES[use].format(annotation=annotation)))
    assert formula.coefficient(formula.what) == (None if number is None else pytest.approx(number))


def test_a_class_of_another_file() -> None:
    files = {"config.py": "class Config:\n    beta: float = 0.04\n"}
    code = "from config import Config\n\n" + USES["a parameter"].format(annotation="Config")
    formula = only(code, files)
    assert formula.coefficient(formula.what) == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("test", "active"), [("__name__ == '__main__'", True), ("'__main__' == __name__", True), ("flag", None)]
)
def test_a_script_is_read_as_it_is_started(test: str, active: bool | None) -> None:
    code = f"""
    import torch
    if {test}:
        logp, ref_logp = model(x).logp, ref_model(x).logp
        loss = pg + 0.1 * (logp - ref_logp).abs().mean()
        loss.backward()
    """
    (setup,) = setups(result_of(code))
    assert setup.terms[0].active is active
