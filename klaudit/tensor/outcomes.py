"""What can be sampled, with the log-probabilities of every policy involved: all outcomes (exact) or drawn ones (Monte Carlo).

Shapes: B instances, N outcomes (token sequences), T positions, V tokens, P parameters.  Log-probabilities are in nats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Token sequences and, at each of their positions, the next-token log-probabilities of three policies.

    `tokens` and `mask` are (B or 1, N, T); `policy`, `reference` and `old` are (B, N, T, V); `jacobian`, d policy / d parameters, is
    (B, N, T, V, P).  `weights` (B, N) are the outcomes' probabilities under the sampling policy, or 1/N for drawn ones.
    """

    tokens: Tensor
    mask: Tensor
    policy: Tensor
    reference: Tensor
    old: Tensor
    jacobian: Tensor
    weights: Tensor

    def sampled(self, table: Tensor) -> Tensor:
        """The log-probabilities (B, N, T) of the outcomes' own tokens in one of the tables."""
        index = self.tokens.expand(table.shape[:-1]).unsqueeze(-1)
        return table.gather(-1, index).squeeze(-1)

    @property
    def log_pi(self) -> Tensor:
        return self.sampled(self.policy)

    @property
    def log_ref(self) -> Tensor:
        return self.sampled(self.reference)

    @property
    def log_old(self) -> Tensor:
        return self.sampled(self.old)

    def on_policy(self) -> Outcomes:
        """The same outcomes, sampled from the policy itself: pi_old = pi."""
        return replace(self, old=self.policy, weights=self.probabilities(self.policy))

    def off_policy(self) -> Outcomes:
        """The same outcomes, sampled from the old policy."""
        return replace(self, weights=self.probabilities(self.old))

    def probabilities(self, table: Tensor) -> Tensor:
        """The probability (B, N) of each whole outcome under one of the tables."""
        return torch.exp((self.sampled(table) * self.mask).sum(-1))

    def attached(self) -> Outcomes:
        """With a policy table that autograd differentiates with respect to; contract the result with `jacobian`."""
        return replace(self, policy=self.policy.detach().clone().requires_grad_())

    def to(self, device: torch.device, dtype: torch.dtype) -> Outcomes:
        """On another device, with floating-point tensors in `dtype`."""
        return Outcomes(
            tokens=self.tokens.to(device),
            mask=self.mask.to(device, dtype),
            policy=self.policy.to(device, dtype),
            reference=self.reference.to(device, dtype),
            old=self.old.to(device, dtype),
            jacobian=self.jacobian.to(device, dtype),
            weights=self.weights.to(device, dtype),
        )
