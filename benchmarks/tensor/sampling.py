"""Tokens sampled at another temperature or from a nucleus, while log pi is that of the policy at temperature 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.tensor.markdown import Cell, table
from klaudit.tensor.gradients import distance, expected_gradient
from klaudit.tensor.laboratory import Bench, Laboratory
from klaudit.tensor.surrogates import loss, reward


def sections() -> Iterator[str]:
    bench = Laboratory.at(torch.device("cpu"), sequences=1).tokens[1]
    samplers: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
        ("temperature 1", lambda p: p),
        ("temperature 0.8", lambda p: _normalised(p ** (1 / 0.8))),
        ("temperature 0.6", lambda p: _normalised(p ** (1 / 0.6))),
        ("top-p 0.95", _nucleus),
    )
    rows: list[list[Cell]] = [[name, *_measured(bench, sampler)] for name, sampler in samplers]
    head = ["sampled at", "k1 in reward, k2 in loss: bias", "k1 in loss: bias", "k1 in loss: norm ratio", "E[k1] / KL"]
    yield f"## Sampling parameters\n\nmedians of 40 policies, KL(pi||ref) = {bench.kl:g}\n\n" + table(head, rows)


def _measured(bench: Bench, sampler: Callable[[Tensor], Tensor]) -> list[float]:
    outcomes = replace(bench.on_policy, weights=sampler(bench.on_policy.weights))
    penalty, pathwise = (
        distance(expected_gradient(each, outcomes), bench.true) for each in (reward("k1"), loss("k1", "pathwise"))
    )
    estimate = (outcomes.weights * (outcomes.log_pi - outcomes.log_ref)[..., 0]).sum(-1) / bench.kl
    return [float(each.median()) for each in (penalty.bias, pathwise.bias, pathwise.norm_ratio, estimate)]


def _normalised(p: Tensor) -> Tensor:
    return p / p.sum(-1, keepdim=True)


def _nucleus(p: Tensor) -> Tensor:
    ordered = p.sort(-1, descending=True)
    kept = ordered.values.cumsum(-1) - ordered.values < 0.95
    return _normalised(p * torch.zeros_like(p).scatter(-1, ordered.indices, kept.to(p.dtype)))
