"""Several optimiser steps on one rollout, PPO's way: what becomes of the penalty's gradient as the policy leaves the sampling policy.

A bandit: softmax over V outcomes, exact expectations under pi_old.  At every step the gradient of the penalty's part alone is compared
with that of beta*KL(pi||ref) at the current policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from klaudit.model import EstimatorName
from klaudit.tensor.backend import seeded
from klaudit.tensor.estimators import GradientForm, estimate, penalty
from klaudit.tensor.gradients import Distance, distance

CLIP = 0.2


@dataclass(frozen=True, slots=True)
class Bandit:
    """B bandits with V outcomes: task rewards, reference log-probabilities and the logits at the start, each (B, V)."""

    reward: Tensor
    log_ref: Tensor
    start: Tensor

    @classmethod
    def drawn(cls, count: int = 20, outcomes: int = 8, seed: int = 0) -> Bandit:
        """Rewards uniform in [0, 1], reference logits normal, the start a random step of half that size away (KL about 0.07 nats)."""
        generator = seeded(seed)
        reward = torch.rand(count, outcomes, generator=generator, dtype=torch.float64)
        logits, step = (torch.randn(count, outcomes, generator=generator, dtype=torch.float64) for _ in range(2))
        return cls(reward, torch.log_softmax(logits, -1), logits + step / 2)

    def to(self, device: torch.device, dtype: torch.dtype) -> Bandit:
        return Bandit(self.reward.to(device, dtype), self.log_ref.to(device, dtype), self.start.to(device, dtype))


@dataclass(frozen=True, slots=True)
class Step:
    """What a loss may use in an inner step; log pi (attached) and log pi_old are (B, V)."""

    log_pi: Tensor
    log_old: Tensor
    bandit: Bandit
    beta: float

    @property
    def ratio(self) -> Tensor:
        return torch.exp(self.log_pi - self.log_old)

    def expected(self, values: Tensor) -> Tensor:
        return (self.log_old.exp() * values).sum(-1)

    def advantage(self) -> Tensor:
        return self.bandit.reward - self.expected(self.bandit.reward)[:, None]


Loss: TypeAlias = Callable[[Step], tuple[Tensor, Tensor]]  # the expected task part and penalty part, each (B,)


def rewarded(name: EstimatorName, *, clip: bool) -> Loss:
    """The penalty in the reward, frozen at rollout; with `clip`, PPO's clip stops outcomes that have moved far, penalty and all."""

    def parts(step: Step) -> tuple[Tensor, Tensor]:
        value = estimate(name, step.log_old - step.bandit.log_ref)
        value = value - step.expected(value)[:, None]
        live = _unclipped(step.ratio, step.advantage() - step.beta * value) if clip else torch.ones_like(value)
        return -step.expected(live * step.ratio * step.advantage()), step.beta * step.expected(
            live * step.ratio * value
        )

    return parts


def in_loss(name: EstimatorName, form: GradientForm) -> Loss:
    """The penalty in the loss, re-evaluated at every step; the clip concerns the task's part alone."""

    def parts(step: Step) -> tuple[Tensor, Tensor]:
        live = _unclipped(step.ratio, step.advantage())
        each = penalty(name, form, step.log_pi, step.bandit.log_ref, step.log_old)
        return -step.expected(live * step.ratio * step.advantage()), step.beta * step.expected(each)

    return parts


def penalty_distances(
    loss: Loss, bandit: Bandit, *, beta: float = 0.2, steps: int = 8, rate: float = 2.0
) -> list[Distance]:
    """How far the penalty's gradient is from beta*grad KL(pi||ref) at each of `steps` gradient steps of size `rate` after one rollout."""
    found = []
    log_old = torch.log_softmax(bandit.start, -1)
    logits = bandit.start
    for _ in range(steps):
        task, descended = _gradients(loss, bandit, logits, log_old, beta)
        log_pi = torch.log_softmax(logits, -1)
        d = log_pi - bandit.log_ref
        true = beta * log_pi.exp() * (d - (log_pi.exp() * d).sum(-1, keepdim=True))
        found.append(distance(descended, true))
        logits = logits - rate * (task + descended)
    return found


def descended(
    loss: Loss, bandit: Bandit, *, beta: float = 0.2, rollouts: int = 300, steps: int = 8, rate: float = 2.0
) -> Tensor:
    """Where training ends: the log-probabilities (B, V) after many rollouts with `steps` gradient steps each."""
    logits = bandit.start
    for _ in range(rollouts):
        log_old = torch.log_softmax(logits, -1)
        for _ in range(steps):
            logits = logits - rate * torch.stack(_gradients(loss, bandit, logits, log_old, beta)).sum(0)
    return torch.log_softmax(logits, -1)


def _gradients(loss: Loss, bandit: Bandit, logits: Tensor, log_old: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """The gradients (B, V) of the task's and of the penalty's part."""
    attached = logits.detach().requires_grad_()
    task, kl_part = loss(Step(torch.log_softmax(attached, -1), log_old, bandit, beta))
    (of_task,) = torch.autograd.grad(task.sum(), attached, retain_graph=True)
    (of_kl_part,) = torch.autograd.grad(kl_part.sum(), attached)
    return of_task, of_kl_part


def _unclipped(ratio: Tensor, advantage: Tensor) -> Tensor:
    """Where min(ratio*A, clip(ratio)*A) still has a gradient."""
    stopped = ((ratio > 1 + CLIP) & (advantage > 0)) | ((ratio < 1 - CLIP) & (advantage < 0))
    return (~stopped.detach()).to(ratio.dtype)
