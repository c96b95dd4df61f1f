"""Floating-point effects, as they are stated in the documentation."""

from __future__ import annotations

import pytest
import torch

from klaudit.tensor.numerics import Numeric, check_numerics


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Numeric]:
    return {(each.case, each.dtype): each for each in check_numerics(torch.device("cpu"))}


def near(found: dict[tuple[str, str], Numeric], form: str, deviation: str, dtype: str) -> dict[str, float]:
    return found[f"k3 as {form}, d ~ N(0, {deviation}^2)", dtype].measured


def test_cancellation_and_its_cure(found: dict[tuple[str, str], Numeric]) -> None:
    cancelled = near(found, "exp(x) - x - 1", "0.0001", "float32")
    assert cancelled["relative bias"] < -1 and cancelled["negative"] > 0.05
    cured = near(found, "expm1(x) - x", "0.0001", "float32")
    assert abs(cured["relative bias"]) < 1e-4 and cured["negative"] == 0
    assert near(found, "exp(x) - x - 1", "0.01", "bfloat16")["relative bias"] == pytest.approx(-10.7, abs=1)
    assert near(found, "exp(x) - x - 1", "0.1", "bfloat16")["zero"] == pytest.approx(0.57, abs=0.02)


def test_rounded_log_probabilities_raise_k2_and_k3(found: dict[tuple[str, str], Numeric]) -> None:
    rounded = [each.measured for (case, _), each in found.items() if case.startswith("log-probabilities")]
    assert len(rounded) == 3
    for shifts in rounded:
        assert 3e-6 < shifts["k2 shifted by"] < 6e-5
        assert shifts["k3 shifted by"] == pytest.approx(shifts["k2 shifted by"], rel=0.05)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_only_a_clamp_before_the_exponential_keeps_the_gradient_finite(
    dtype: str, found: dict[tuple[str, str], Numeric]
) -> None:
    remedies = {
        case.rpartition(": ")[2]: each.measured
        for (case, kind), each in found.items()
        if "remedy" in case and kind == dtype
    }
    assert len(remedies) == 5
    assert {name for name, measured in remedies.items() if measured["gradient finite"]} == {"clamp of the log-ratio"}
    assert remedies["clamp of the value"]["value finite"] == 1
