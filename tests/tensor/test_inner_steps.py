"""Several steps on one rollout: frozen penalties go stale, re-weighted ones do not, and where training ends."""

from __future__ import annotations

import pytest
import torch

from klaudit.tensor.inner_steps import Bandit, Loss, descended, in_loss, penalty_distances, rewarded

BETA = 0.2


def biases(loss: Loss) -> list[float]:
    return [float(found.bias.median()) for found in penalty_distances(loss, Bandit.drawn())]


def test_an_attached_ratio_times_k3_stays_exact() -> None:
    assert max(biases(in_loss("k3", "importance-weighted"))) < 1e-12


def test_a_frozen_reward_is_exact_at_first_and_stale_later() -> None:
    found = biases(rewarded("k1", clip=False))
    assert found[0] < 1e-12
    assert (found[1], found[3], found[7]) == pytest.approx((0.19, 0.54, 0.85), abs=0.08)


def test_k3_is_biased_from_the_first_step_on_and_k1_in_the_loss_turns_against_the_objective() -> None:
    assert min(biases(in_loss("k3", "pathwise"))) > 0.2
    last = penalty_distances(in_loss("k1", "pathwise"), Bandit.drawn())[-1]
    assert float(last.cosine.nanmedian()) < -0.7


def test_the_clip_stalls_a_rewarded_penalty() -> None:
    clipped, free = (penalty_distances(rewarded("k1", clip=clip), Bandit.drawn())[-1] for clip in (True, False))
    assert float(clipped.multiplier.median()) < float(free.multiplier.median())


ENDS = [
    (rewarded("k1", clip=False), 0.0),
    (in_loss("k2", "pathwise"), 0.0),
    (in_loss("k3", "importance-weighted"), 0.0),
    (in_loss("k3", "pathwise"), 0.05),
]


@pytest.mark.parametrize(("loss", "away"), ENDS)
def test_where_training_ends(loss: Loss, away: float) -> None:
    bandit = Bandit.drawn(count=4)
    best = torch.softmax(bandit.log_ref + bandit.reward / BETA, -1)
    reached = descended(loss, bandit, beta=BETA, rollouts=120).exp()
    variation = float(((reached - best).abs().sum(-1) / 2).max())
    assert variation < 2e-3 if not away else variation > away


def test_k3_in_the_loss_ends_where_its_own_objective_says() -> None:
    """Stationary points of -R + beta*KL(ref||pi): pi = beta*ref / (lambda - R)."""
    bandit = Bandit.drawn(count=3)
    reached = descended(in_loss("k3", "pathwise"), bandit, beta=BETA, rollouts=600, steps=1, rate=20.0).exp()
    multipliers = bandit.reward + BETA * bandit.log_ref.exp() / reached
    assert float((multipliers.max(-1).values - multipliers.min(-1).values).max()) < 1e-3
