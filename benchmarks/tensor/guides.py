"""Claims in circulating guides against the numbers: pi is what is sampled and optimised, ref what it is compared with.

Gaussians with unit variance and means m apart have KL = m^2/2 in both directions, and every moment in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from benchmarks.tensor.markdown import Cell, table
from klaudit.tensor.backend import seeded
from klaudit.tensor.instances import categorical

DISTANCES = (4e-4, 4e-3, 0.04, 0.16, 0.45, 1.0)


def sections() -> Iterator[str]:
    yield _schulman()
    yield _variances()
    yield _wrong_ratio()
    yield _weighted_twice()
    yield _mixture()
    yield _merging()
    yield _clamp()


def _schulman() -> str:
    rows: list[list[Cell]] = []
    for mean in (0.1, 1.0):
        square = mean * mean  # d ~ N(m^2/2, m^2) under the sampled one
        kl, k2 = square / 2, (square + square**2 / 4) / 2
        k2_variance = (2 * square**2 + 4 * square * (square / 2) ** 2) / 4
        deviations = [mean, math.sqrt(k2_variance), math.sqrt(math.exp(square) - 1 - square)]
        rows.append([f"{mean:g}", kl, k2 / kl - 1, *(deviation / kl for deviation in deviations)])
    head = ["means apart", "KL", "bias of k2", "k1: deviation / KL", "k2", "k3"]
    return "## Schulman's table (joschu.net/blog/kl-approx.html)\n\n" + table(head, rows)


def _variances() -> str:
    rows: list[list[Cell]] = []
    for kl in DISTANCES:
        outcomes = categorical(kl, count=200, seed=1).on_policy()
        d = (outcomes.log_pi - outcomes.log_ref)[..., 0]
        values = [d, d.square() / 2, torch.expm1(-d) + d]
        means = [(outcomes.weights * value).sum(-1) for value in values]
        variances = [
            (outcomes.weights * (value - mean[:, None]).square()).sum(-1)
            for value, mean in zip(values, means, strict=True)
        ]
        gaussian = (math.exp(2 * kl) - 1 - 2 * kl) / (2 * kl)
        rows.append(
            [
                f"{kl:g}",
                float((variances[2] / variances[0]).median()),
                gaussian,
                float((means[1] / kl - 1).abs().median()),
            ]
        )
    head = [
        "KL(pi||ref)",
        "variance of k3 / of k1, categorical (median of 200)",
        "the same, Gaussian",
        "|bias| of k2, relative",
    ]
    return "## There is no fixed ratio of variances\n\n" + table(head, rows)


def _wrong_ratio() -> str:
    rows: list[list[Cell]] = []
    for kl in (0.005, 0.04, 0.16, 0.45, 0.5, 1.0):
        factor = (math.exp(2 * kl) - 1 - kl) / kl
        outcomes = categorical(kl, count=200, seed=1).on_policy()
        d = (outcomes.log_pi - outcomes.log_ref)[..., 0]
        rows.append([f"{kl:g}", float(((outcomes.weights * (torch.expm1(d) - d)).sum(-1) / kl).median()), factor])
    head = ["KL(pi||ref)", "E_pi[r - 1 - log r] / KL with r = pi/ref, categorical", "Gaussian"]
    return "## k3 with the ratio upside down: chi2(pi||ref) - KL(pi||ref) instead of KL(pi||ref)\n\n" + table(
        head, rows
    )


def _weighted_twice() -> str:
    rows: list[list[Cell]] = []
    for kl in (4e-4, 0.04, 0.16, 1.0):
        outcomes = categorical(kl, count=200, seed=1).on_policy()
        d = (outcomes.log_pi - outcomes.log_ref)[..., 0]
        found = (outcomes.weights.square() * d).sum(-1) / kl
        rows.append([f"{kl:g}", float(found.min()), float(found.median()), float(found.max())])
    large: list[list[Cell]] = []
    for vocabulary in (1000, 151_936):
        logits = torch.randn(1, vocabulary, generator=seeded(0), dtype=torch.float64)
        log_p = torch.log_softmax(logits, -1)
        log_q = torch.log_softmax(
            logits + 0.5 * torch.randn(1, vocabulary, generator=seeded(1), dtype=torch.float64), -1
        )
        each = log_p.exp() * (log_p - log_q)
        large.append([str(vocabulary), float(each.mean() / each.sum())])
    return (
        "## p * (log p - log q) averaged over sampled tokens weights with p twice\n\n"
        + table(["KL(p||q)", "mean / KL, least", "median", "greatest (200 policies, V = 8)"], rows)
        + "\n\nand over the whole vocabulary `.mean()` divides by V:\n\n"
        + table(["V", ".mean() / KL"], large)
    )


def _mixture() -> str:
    rows: list[list[Cell]] = []
    for kl in (0.04, 0.45):
        outcomes = categorical(kl, count=200, seed=1).on_policy()
        d = (outcomes.log_pi - outcomes.log_ref)[..., 0]
        weights = (outcomes.weights + outcomes.log_ref[..., 0].exp()) / 2
        k1, k3 = ((weights * value).sum(-1) / kl for value in (d, torch.expm1(-d) + d))
        rows.append([f"{kl:g}", float(k1.median()), float(k3.median())])
    return "## Half of the samples from ref, unweighted\n\n" + table(["KL(pi||ref)", "E[k1] / KL", "E[k3] / KL"], rows)


def _merging() -> str:
    """An f-divergence cannot rise when two symbols are merged; E[k2] can, since (log t)^2/2 is convex only for t < e."""
    generator = seeded(0)
    p, q = (torch.softmax(3 * torch.randn(20_000, 3, generator=generator, dtype=torch.float64), -1) for _ in range(2))

    def k2(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a * (a.log() - b.log()).square() / 2).sum(-1)

    merged_p, merged_q = (torch.stack([x[:, 0] + x[:, 1], x[:, 2]], -1) for x in (p, q))
    share = float((k2(merged_p, merged_q) > k2(p, q) * (1 + 1e-12)).double().mean())
    return f"## E[k2] is no f-divergence\n\nmerging two of three symbols raised it in {share:.1%} of 20000 random pairs"


def _clamp() -> str:
    d = torch.tensor([-10.5, -12.0], dtype=torch.float64, requires_grad=True)
    value = torch.exp((-d).clamp(max=10)) - 1 + d
    (slope,) = torch.autograd.grad(value.sum(), d)
    at = [
        f"d = {x:g}: value {v:.0f}, slope {w:+.0f}, unclamped {1 - math.exp(-x):+.0f}"
        for x, v, w in zip(d.tolist(), value.tolist(), slope.tolist(), strict=True)
    ]
    return "## Clamping only the argument of exp at 10 flips the gradient\n\n" + "; ".join(at)
