"""Clamped score weights: where they die, and what is left."""

from __future__ import annotations

import itertools
import math

import pytest

from klaudit.theory import Clamp, clamped


def test_k3_clamped_at_ten_is_alive_from_minus_2_61_to_11() -> None:
    (below, above) = clamped("k3", "loss", Clamp("value", -10, 10)).dead
    assert below[1] == pytest.approx(-2.6109, abs=1e-4)
    assert above[0] == pytest.approx(11, abs=1e-4)


def test_k2_clamped_at_ten_is_alive_within_4_47() -> None:
    (below, above) = clamped("k2", "loss", Clamp("value", -10, 10)).dead
    assert (below[1], above[0]) == pytest.approx((-math.sqrt(20), math.sqrt(20)))


@pytest.mark.parametrize("name", ["k1", "k2", "k3", "abs", "reversed-k3"])
@pytest.mark.parametrize("placement", ["loss", "reward"])
@pytest.mark.parametrize(
    "clamp", [Clamp("value", 0.2, 3), Clamp("log-ratio", -2, 1), Clamp("value", high=5), Clamp("log-ratio", low=-4)]
)
def test_pieces_cover_the_line_in_order(name, placement, clamp) -> None:
    pieces = clamped(name, placement, clamp).pieces
    assert pieces[0][0] == -math.inf
    assert pieces[-1][1] == math.inf
    assert all(before[1] == after[0] < after[1] for before, after in itertools.pairwise(pieces))


def test_a_one_sided_clamp_of_the_exponent_flips_the_sign() -> None:
    weight = clamped("k3", "loss", Clamp("exponent", high=10))
    assert weight(-9.9) < -10_000
    assert weight(-10.1) == 1.0
    assert weight.dead == ()


def test_a_clamped_reward_is_constant_outside() -> None:
    weight = clamped("k3", "reward", Clamp("value", -10, 10))
    assert weight(-5.0) == weight(-50.0) == weight(20.0) == 10.0
    assert weight(1.0) == pytest.approx(math.exp(-1))


def test_bounds_out_of_reach_change_nothing() -> None:
    assert clamped("abs", "loss", Clamp("value", high=math.inf)).dead == ()
    assert str(clamped("k1", "loss", Clamp("value"))) == "1 for all d"


def test_what_cannot_be_clamped_is_refused() -> None:
    with pytest.raises(ValueError, match="empty clamp"):
        Clamp("value", 1, 1)
    with pytest.raises(ValueError, match="no exponential"):
        clamped("k1", "loss", Clamp("exponent", high=1))
