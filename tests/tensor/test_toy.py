"""The minimal model: three ways to the same gradient, and the published picture of bias and variance."""

from __future__ import annotations

import pytest
import torch

from klaudit.tensor.gradients import distance, expected_gradient, moments, objective_gradient, sample_gradients
from klaudit.tensor.objectives import reverse_kl
from klaudit.tensor.surrogates import Surrogate, loss, reward, total
from klaudit.tensor.toy import CLOSE, CLOSE_5, CLOSE_20, FAR_5, FAR_20, ToySetting, drawn, enumerated, exact_kl


@pytest.mark.parametrize(
    "setting", [CLOSE_5, FAR_5, ToySetting("close, T=10", *CLOSE, 10)], ids=lambda setting: setting.name
)
def test_enumeration_and_dynamic_programming_agree(setting: ToySetting) -> None:
    outcomes = enumerated(setting)
    kl, gradient = exact_kl(setting)
    assert float(reverse_kl(outcomes)) == pytest.approx(kl, abs=1e-12)
    assert torch.allclose(objective_gradient(reverse_kl, outcomes)[0], gradient, atol=1e-12)
    assert torch.allclose(expected_gradient(reward("k1"), outcomes)[0], gradient, atol=1e-12)


@pytest.mark.parametrize(
    ("setting", "kl", "gradient"),
    [
        (CLOSE_5, 0.088, (0.4010, 0.1973)),
        (CLOSE_20, 0.344, (1.8341, 0.6512)),
        (FAR_5, 0.965, (1.0936, 0.6458)),
        (FAR_20, 4.05, (6.1351, 2.7896)),
    ],
)
def test_measured_gradients(setting: ToySetting, kl: float, gradient: tuple[float, float]) -> None:
    found, true = exact_kl(setting)
    assert found == pytest.approx(kl, rel=2e-3)
    assert true.tolist() == pytest.approx(gradient, abs=1e-4)


K3_BOTH = total((1.0, reward("k3", "return-to-go")), (1.0, loss("k3", "pathwise")))
PICTURE: list[
    tuple[Surrogate, float, float, float]
] = [  # relative bias close and far, variance of 1000 sequences close
    (reward("k1"), 0.0, 0.0, 2.9e-4),
    (reward("k1", "return-to-go"), 0.0, 0.0, 9.7e-5),
    (loss("k1", "pathwise"), 1.0, 1.0, 1.6e-3),
    (reward("k3"), 0.99, 1.18, 9.6e-6),
    (loss("k3", "pathwise"), 0.053, 0.27, 9.6e-5),
    (loss("k2", "pathwise"), 0.096, 0.31, 5.7e-5),
    (K3_BOTH, 0.0, 0.0, 7.3e-5),
    (loss("abs", "pathwise"), 3.2, 0.21, 8.0e-4),
]


@pytest.mark.parametrize(("configuration", "close", "far", "variance"), PICTURE)
def test_bias_and_variance(configuration: Surrogate, close: float, far: float, variance: float) -> None:
    for setting, expected in ((CLOSE_5, close), (FAR_5, far)):
        found = moments(configuration, enumerated(setting))
        _, true = exact_kl(setting)
        assert float(distance(found.mean[0], true).bias) == pytest.approx(expected, rel=0.04, abs=1e-10)
        if setting is CLOSE_5:
            assert float(found.variance) / 1000 == pytest.approx(variance, rel=0.3)


def test_samples_follow_the_model() -> None:
    outcomes = drawn(CLOSE_5, 1, 100_000, torch.Generator().manual_seed(2))
    codes = (outcomes.tokens[0] * (2 ** torch.arange(4, -1, -1))).sum(-1)
    found = torch.bincount(codes, minlength=32) / 100_000
    expected = enumerated(CLOSE_5).weights[0]
    assert (found - expected).abs().max() < 0.006


def test_seeds_reproduce_samples() -> None:
    first, second = (drawn(CLOSE_5, 2, 50, torch.Generator().manual_seed(9)) for _ in range(2))
    assert torch.equal(first.tokens, second.tokens)
    assert sample_gradients(reward("k1"), first).shape == (2, 50, 2)


def test_too_long_to_enumerate_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        enumerated(CLOSE_20)
