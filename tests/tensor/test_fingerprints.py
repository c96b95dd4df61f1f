"""Users' functions identified through autograd, and the assertion for their unit tests."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from klaudit.model import EstimatorName, Gradient, Placement, Verdict
from klaudit.tensor import Fingerprint, TensorError, assert_unbiased, fingerprint


def k1(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return logp - ref_logp


def k2(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return 0.5 * (logp - ref_logp).square()


def k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    x = ref_logp - logp
    return torch.exp(x) - x - 1


def clamped_k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return k3(logp, ref_logp).clamp(-10, 10)


def straight_through(logp: Tensor, ref_logp: Tensor) -> Tensor:
    forward, backward = k3(logp, ref_logp), k2(logp, ref_logp)
    return backward - backward.detach() + forward.detach()


def weighted_k3(logp: Tensor, ref_logp: Tensor, old_logp: Tensor) -> Tensor:
    return torch.exp(logp - old_logp) * k3(logp, ref_logp)


def detached_ratio_k2(logp: Tensor, ref_logp: Tensor, old_logp: Tensor) -> Tensor:
    return torch.exp(logp - old_logp).detach().clamp(max=4) * k2(logp, ref_logp)


CASES: list[tuple[Callable[..., Tensor], Placement, EstimatorName, Gradient, str, Verdict]] = [
    (k1, "loss", "k1", "pathwise", "1", "no-regularisation"),
    (k1, "reward", "k1", "score", "d", "unbiased"),
    (k2, "loss", "k2", "pathwise", "d", "unbiased-per-token"),
    (k2, "reward", "k2", "score", "0.5*d^2", "biased"),
    (k3, "loss", "k3", "pathwise", "1 - exp(-d)", "biased"),
    (k3, "reward", "k3", "score", "d + exp(-d) - 1", "biased"),
    (straight_through, "loss", "k3", "straight-through-k2", "d", "unbiased-per-token"),
    (straight_through, "reward", "k3", "score", "d + exp(-d) - 1", "biased"),
    (weighted_k3, "loss", "k3", "importance-weighted", "d", "unbiased-per-token"),
    (detached_ratio_k2, "loss", "k2", "pathwise", "d", "unbiased-per-token"),
    (lambda a, b: (a - b).abs(), "loss", "abs", "pathwise", "sign(d)", "biased"),
    (lambda a, b: torch.exp(a - b) - 1 - (a - b), "loss", "reversed-k3", "pathwise", "exp(d) - 1", "biased"),
    (lambda a, b: k3(a, b).detach(), "loss", "k3", "none", "0", "no-gradient"),
    (lambda a, b: a.float() - b.float(), "reward", "k1", "score", "d", "unbiased"),
]


@pytest.mark.parametrize(("fn", "placement", "estimator", "gradient", "weight", "verdict"), CASES)
def test_functions_are_identified(fn, placement, estimator, gradient, weight, verdict) -> None:
    found = fingerprint(fn, placement)
    assert (found.estimator, found.gradient, found.score_weight, found.verdict) == (
        estimator,
        gradient,
        weight,
        verdict,
    )
    assert found.clamp is None


def test_what_it_descends_is_named() -> None:
    assert fingerprint(k3).descends == "KL(ref||pi)"
    assert fingerprint(straight_through).descends == "KL(pi||ref)"
    assert fingerprint(lambda a, b: 3 * k3(a, b)).descends == "3 times KL(ref||pi)"
    assert fingerprint(k1).descends == "nothing on-policy"


def test_clamps_and_the_nan_behind_them() -> None:
    found = fingerprint(clamped_k3)
    assert found.clamp == pytest.approx((-2.6109, 11), abs=1e-3)
    notes = " ".join(found.notes)
    assert "no gradient for d < -2.611" in notes
    assert "the gradient is not finite though the value is" in notes


def test_a_clamp_before_the_exponential_is_safe() -> None:
    def safe(logp: Tensor, ref_logp: Tensor) -> Tensor:
        x = (ref_logp - logp).clamp(-8, 8)
        return torch.expm1(x) - x

    found = fingerprint(safe)
    assert found.clamp == pytest.approx((-8, 8))
    assert not any("finite" in note or "overflow" in note or "negative" in note for note in found.notes)


def test_a_one_sided_clamp_flips_the_sign() -> None:
    def one_sided(logp: Tensor, ref_logp: Tensor) -> Tensor:
        x = ref_logp - logp
        return torch.exp(x.clamp(max=10)) - 1 - x

    assert "the sign flips for d < -10" in fingerprint(one_sided).notes


def test_low_precision_is_told() -> None:
    found = fingerprint(lambda a, b: k3(a.bfloat16(), b.bfloat16()))
    assert any("2 %" in note for note in found.notes) or found.estimator == "unknown"
    assert any("negative near d = 0" in note and "bfloat16" in note for note in fingerprint(k3).notes)


def test_a_ratio_clamp_is_told() -> None:
    assert "the ratio pi/pi_old is clamped above 4" in fingerprint(detached_ratio_k2).notes
    assert fingerprint(detached_ratio_k2).variant == "detached-ratio"


def test_tokens_that_depend_on_each_other_are_not_judged() -> None:
    def of_sequences(logp: Tensor, ref_logp: Tensor, old_logp: Tensor) -> Tensor:
        return torch.exp((logp - old_logp).mean(-1, keepdim=True)) * k3(logp, ref_logp)

    def centred(logp: Tensor, ref_logp: Tensor) -> Tensor:
        d = logp - ref_logp
        return d - d.mean()

    for fn in (of_sequences, centred):
        assert fingerprint(fn, "loss").verdict == "unknown"


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda a, b: (a - b).mean(), r"penalty of each token, shape \(14, 1\), not \(\)"),
        (lambda a, b: 3.0, "must return a tensor, not float"),
        (lambda a: a, "must take"),
        (lambda a, b, c, d: a, "not 4 required parameters"),
        (lambda a, b: a / 0 * float("nan"), "finite nowhere"),
        (lambda a, b: a @ b, "raised RuntimeError"),
    ],
)
def test_what_cannot_be_judged_is_refused(fn, message) -> None:
    with pytest.raises(TensorError, match=message):
        fingerprint(fn)


def test_only_two_placements() -> None:
    with pytest.raises(TensorError, match="placement"):
        fingerprint(k1, "metric")


def test_assertion_passes_where_it_should() -> None:
    assert_unbiased(k1, placement="reward")
    assert_unbiased(k2, per_token=True)
    assert_unbiased(weighted_k3, per_token=True)
    assert_unbiased(lambda a, b: (a - b).clamp(-10, 10), placement="reward")


@pytest.mark.parametrize(
    ("fn", "placement", "per_token", "message"),
    [
        (k3, "loss", True, "KL\\(ref\\|\\|pi\\): biased"),
        (k1, "loss", True, "no-regularisation"),
        (k2, "loss", False, "per_token=True"),
        (k2, "reward", False, "biased"),
        (lambda a, b: k2(a, b).clamp(max=10), "loss", True, "not for all"),
        (lambda a, b: b - a, "reward", False, "sign is reversed"),
    ],
)
def test_assertion_fails_with_the_sampled_table(fn, placement, per_token, message) -> None:
    with pytest.raises(AssertionError, match=message) as caught:
        assert_unbiased(fn, placement=placement, per_token=per_token)
    assert "w of KL" in str(caught.value)


def test_fingerprints_survive_json() -> None:
    for fn in (k3, clamped_k3):
        found = fingerprint(fn)
        assert Fingerprint.from_json(found.to_json()) == found
    half_open = fingerprint(lambda a, b: k2(a, b.clamp(min=-30)) * (a - b > -1))
    assert Fingerprint.from_json(half_open.to_json()).clamp == half_open.clamp
    assert math.isinf(half_open.clamp[1]) if half_open.clamp else True
