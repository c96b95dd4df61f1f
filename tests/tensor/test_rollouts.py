"""Rollouts measured: estimates that cover the truth, clamped shares, and what cannot be measured."""

from __future__ import annotations

import math

import pytest
import torch

from klaudit.tensor.errors import TensorError
from klaudit.tensor.rollouts import Measurement, Rollouts, measure
from klaudit.tensor.toy import CLOSE_5, drawn, exact_kl


def toy_rollouts(seed: int, sequences: int = 400) -> Rollouts:
    outcomes = drawn(CLOSE_5, 1, sequences, torch.Generator().manual_seed(seed))
    return Rollouts.of({"logp": outcomes.log_pi[0], "ref_logp": outcomes.log_ref[0]}, "toy")


def test_intervals_cover_the_exact_kl() -> None:
    kl, _ = exact_kl(CLOSE_5)
    found = [measure(toy_rollouts(seed)) for seed in range(60)]
    for name in ("k1", "k3"):
        covered = sum(kl / 5 in each.estimates[name].interval() for each in found)
        assert covered >= 51  # 57 expected of 60
    assert sum(kl in each.sequence_kl.interval() for each in found) >= 51


def test_errors_are_clustered_by_sequence() -> None:
    """Tokens of one sequence that say the same count once."""
    d = torch.randn(50, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    once = measure(Rollouts.of({"logp": d - 3, "ref_logp": torch.full_like(d, -3)}, "x"))
    often = measure(
        Rollouts.of({"logp": d.expand(50, 8) - 3, "ref_logp": torch.full((50, 8), -3.0, dtype=torch.float64)}, "x")
    )
    assert often.estimates["k1"].standard_error == pytest.approx(once.estimates["k1"].standard_error)


@pytest.fixture(scope="module")
def wide() -> Measurement:
    d = torch.linspace(-15, 15, 3001, dtype=torch.float64).reshape(-1, 1)
    return measure(Rollouts.of({"logp": d - 20, "ref_logp": torch.full_like(d, -20.0)}, "wide"))


def test_clamped_shares(wide: Measurement) -> None:
    shares = dict(wide.clamped)
    assert shares["k1, value clamped to -10..10"] == pytest.approx(1 / 3, abs=1e-3)
    assert shares["k2, value clamped to -10..10"] == pytest.approx(1 - math.sqrt(20) / 15, abs=1e-3)
    assert shares["k3, value clamped to -10..10"] == pytest.approx(1 - (2.611 + 11) / 30, abs=1e-3)


def test_effects_on_the_users_own_data(wide: Measurement) -> None:
    effects = {effect.configuration: effect for effect in wide.effects}
    for name in ("k1-in-reward", "k2-in-loss", "k3-in-loss-straight-through-k2"):
        assert (effects[name].multiplier, effects[name].bias) == pytest.approx((1, 0), abs=1e-12)
    assert effects["k1-in-loss"].cosine is None and effects["k1-in-loss"].bias == 1
    assert effects["k2-in-reward"].multiplier == pytest.approx(0, abs=1e-9)  # even on data symmetric around zero
    assert effects["k3-in-loss"].bias > 10


def test_staleness() -> None:
    logp = torch.full((4, 3), -1.0)
    found = measure(Rollouts.of({"logp": logp, "ref_logp": logp - 0.1, "old_logp": logp - math.log(2)}, "x")).staleness
    assert found is not None
    assert (found["largest_ratio"], found["effective_share"], found["kl_old_to_policy"]) == pytest.approx(
        (2, 1, -math.log(2)), rel=1e-5
    )


def test_samples_of_another_policy_are_noticed() -> None:
    own = toy_rollouts(0, 4000)
    assert not any("not drawn" in note for note in measure(own).notes)
    swapped = Rollouts.of({"logp": own.log_ref, "ref_logp": own.log_pi}, "x")
    assert any("not drawn" in note for note in measure(swapped).notes)


def test_masked_positions_may_hold_anything() -> None:
    logp = torch.tensor([[-1.0, float("nan")], [-2.0, -1.0]])
    mask = torch.tensor([[1, 0], [1, 1]])
    assert measure(Rollouts.of({"logp": logp, "ref_logp": torch.full((2, 2), -1.5), "mask": mask}, "x")).tokens == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logp": torch.ones(2, 3), "ref_logp": torch.ones(3, 2)}, r"ref_logp has shape \(3, 2\), logp \(2, 3\)"),
        ({"logp": torch.ones(2, 3), "ref_logp": torch.ones(2, 3), "mask": torch.zeros(2, 3)}, "keeps no token"),
        ({"logp": torch.ones(2, 3), "ref_logp": torch.full((2, 3), float("inf"))}, "6 of 6 values of ref_logp"),
        ({"logp": torch.ones(2, 3, 4), "ref_logp": torch.ones(2, 3, 4)}, "expected arrays of shape"),
        ({"logp": torch.ones(0, 3), "ref_logp": torch.ones(0, 3)}, "expected arrays of shape"),
        ({"logp": torch.ones(()), "ref_logp": torch.ones(())}, "expected arrays of shape"),
    ],
)
def test_what_cannot_be_measured(arrays, message) -> None:
    with pytest.raises(TensorError, match=message):
        Rollouts.of(arrays, "file")


def test_one_sequence_has_no_error() -> None:
    with pytest.raises(TensorError, match="at least two sequences"):
        measure(Rollouts.of({"logp": torch.ones(1, 3), "ref_logp": torch.ones(1, 3)}, "x"))


def test_the_policy_that_is_the_reference() -> None:
    found = measure(Rollouts.of({"logp": -torch.ones(3, 2), "ref_logp": -torch.ones(3, 2)}, "x"))
    assert found.estimates["k3"].mean == 0
    assert any("equal everywhere" in note for note in found.notes)


def test_overflow_is_reported() -> None:
    logp = torch.full((2, 2), -2000.0, dtype=torch.float64)
    found = measure(Rollouts.of({"logp": logp, "ref_logp": logp / 2000}, "x"))
    assert any("overflows" in note for note in found.notes)


def test_flat_arrays_are_tokens() -> None:
    found = measure(Rollouts.of({"logp": -torch.ones(5), "ref_logp": -torch.arange(5.0)}, "x"))
    assert found.sequences == 5
    assert any("no sequences" in note for note in found.notes)
