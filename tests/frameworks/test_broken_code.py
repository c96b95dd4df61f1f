"""When the code in the tree keeps a migration from being offered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from klaudit.frameworks.migrate import broken_code


def resolution(placement: str, verdict: str) -> Any:
    term = SimpleNamespace(placement=placement, verdict=verdict, active=True)
    consumed = SimpleNamespace(told=lambda where: f"is broken in the {where}")
    return SimpleNamespace(terms=(SimpleNamespace(term=term, is_broken=True, consumed=consumed),))


@pytest.mark.parametrize(
    ("placement", "verdict", "target", "is_blocked"),
    [
        ("loss", "no-gradient", "k2-in-loss", True),  # the same loss would read the new settings
        ("loss", "no-gradient", "k1-in-reward", False),  # it is left behind
        ("loss", "biased", "k1-in-reward", True),  # a reversed ratio stands in a function that the reward may use too
        ("reward", "biased", "k1-in-reward", True),
    ],
)
def test_a_loss_without_gradient_is_left_behind(placement: str, verdict: str, target: str, is_blocked: bool) -> None:
    assert (broken_code(resolution(placement, verdict), target) is not None) == is_blocked
