"""The check at vocabulary scale, on a small vocabulary: exact in closed form, whatever the chunks."""

from __future__ import annotations

import pytest
import torch

from klaudit.tensor.scale import DISTANCES, ScaleReport, Size, check_scale, drawn_log_probs, logit_gradient

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def report() -> ScaleReport:
    return check_scale(CPU, Size(tokens=6, vocabulary=2000))


def test_unbiased_rows_are_and_k3_is_pi_minus_ref(report: ScaleReport) -> None:
    assert report.broken == ()
    assert report.closed_form_error < 1e-14


def test_k3_is_biased_the_more_the_farther(report: ScaleReport) -> None:
    biases = [row.gradient_bias for row in report.rows if row.configuration == "k3-in-loss"]
    assert len(biases) == len(DISTANCES)
    assert biases == sorted(biases) and biases[0] > 1e-3


def test_cost_is_told(report: ScaleReport) -> None:
    assert report.tokens_per_second > 0 and report.peak_bytes > 0 and report.copy_bandwidth > 1e8
    assert 0 < report.bandwidth_share < 1
    assert report.reduced and report.device.startswith("cpu")


def test_chunks_change_nothing_but_the_draws() -> None:
    whole = Size(tokens=4, vocabulary=500)
    assert whole.chunk == 4
    tight = Size(tokens=4, vocabulary=500, memory=500 * 8 * 12)
    assert tight.chunk == 1
    assert check_scale(CPU, tight).broken == ()


def test_distances_are_met_by_every_token() -> None:
    size = Size(tokens=5, vocabulary=3000)
    for kl in DISTANCES:
        log_pi, log_ref = drawn_log_probs(5, size, kl, torch.Generator().manual_seed(0))
        assert torch.allclose(
            (log_pi.exp() * (log_pi - log_ref)).sum(-1), torch.tensor(kl, dtype=torch.float64), rtol=0.02
        )


def test_the_closed_form_is_autograds() -> None:
    logits = torch.randn(3, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    log_pi = torch.log_softmax(logits, -1)
    (expected,) = torch.autograd.grad((log_pi.detach().exp() * weight * log_pi).sum(), logits)
    assert torch.allclose(logit_gradient(log_pi.detach().exp(), weight), expected, atol=1e-15)


def test_the_cpu_size_is_reduced() -> None:
    size = Size.for_device(CPU, None, None)
    assert size.vocabulary == 151_936 and size.tokens == 16 and size.dtype == torch.float64
    assert Size.for_device(CPU, 3, 1 << 20).chunk == 1


def test_a_drift_would_be_noticed(report: ScaleReport) -> None:
    from dataclasses import replace

    rows = tuple(replace(row, gradient_bias=0.1) if row.configuration == "k2-in-loss" else row for row in report.rows)
    assert "k2-in-loss" in replace(report, rows=rows).broken[0]
    assert "pi - ref" in replace(report, closed_form_error=float("nan")).broken[0]
