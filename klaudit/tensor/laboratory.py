"""The enumerated policies on which everything exact is computed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.backend import exact_dtype, tolerance
from klaudit.tensor.gradients import moments, objective_gradient
from klaudit.tensor.instances import autoregressive, categorical
from klaudit.tensor.objectives import reverse_kl
from klaudit.tensor.outcomes import Outcomes
from klaudit.tensor.surrogates import reward

TOKEN_DISTANCES = (0.0035, 0.11, 0.71)  # nats: near the reference, as in training, far
SEQUENCE_DISTANCES = (0.01, 0.2, 1.53)


@dataclass(frozen=True, slots=True)
class Bench:
    """Enumerated policies at one distance, with the gradient of KL(pi||ref) (B, P) and the variance (B,) of rewarded k1 as yardsticks."""

    kl: float
    on_policy: Outcomes
    off_policy: Outcomes
    true: Tensor
    k1_variance: Tensor

    @classmethod
    def of(cls, kl: float, outcomes: Outcomes) -> Bench:
        on_policy = outcomes.on_policy()
        true = objective_gradient(reverse_kl, on_policy)
        return cls(kl, on_policy, outcomes.off_policy(), true, moments(reward("k1"), on_policy).variance)


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Single tokens and whole sequences, each at several distances from the reference."""

    tokens: tuple[Bench, ...]
    sequences: tuple[Bench, ...]

    @classmethod
    def at(cls, device: torch.device, *, seed: int = 0, sequences: int = 20) -> Laboratory:
        """The standard one, in the widest dtype of the device; `sequences` is the number of recurrent policies a distance."""
        dtype = exact_dtype(device)
        return cls(
            tuple(Bench.of(kl, categorical(kl, seed=seed).to(device, dtype)) for kl in TOKEN_DISTANCES),
            tuple(
                Bench.of(kl, autoregressive(kl, count=sequences, seed=seed).to(device, dtype))
                for kl in SEQUENCE_DISTANCES
            ),
        )

    @property
    def device(self) -> torch.device:
        return self.tokens[0].true.device

    @property
    def dtype(self) -> torch.dtype:
        return self.tokens[0].true.dtype

    @property
    def tolerance(self) -> float:
        return tolerance(self.dtype)
