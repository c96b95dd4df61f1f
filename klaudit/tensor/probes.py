"""Calling a penalty function on tensors: value and autograd slope at chosen points, with clear errors where it cannot be done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from klaudit.tensor.errors import TensorError
from klaudit.theory.matching import Point, Sample

PenaltyFunction = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class TensorProbe:
    """A function `fn(logp, ref_logp)` or `fn(logp, ref_logp, old_logp)` that returns the penalty of each token.

    It is called with tensors of shape (points, 1): sequences of one token.
    """

    fn: PenaltyFunction
    takes_old: bool
    dtype: torch.dtype = torch.float64
    device: torch.device | None = None

    @classmethod
    def of(cls, fn: PenaltyFunction, dtype: torch.dtype = torch.float64) -> TensorProbe:
        return cls(fn, _takes_old(fn), dtype)

    def __call__(self, points: Sequence[Point]) -> list[Sample]:
        log_pi, ref, old = (
            torch.tensor([[getattr(point, name)] for point in points], dtype=self.dtype, device=self.device)
            for name in ("log_pi", "log_ref", "log_old")
        )
        value, slope = self.evaluate(log_pi, ref, old)
        return [Sample(v, s) for v, s in zip(value.flatten().tolist(), slope.flatten().tolist(), strict=True)]

    def evaluate(self, log_pi: Tensor, log_ref: Tensor, log_old: Tensor) -> tuple[Tensor, Tensor]:
        """The penalty and the derivative of its sum with respect to log pi, both of the shape of `log_pi`.

        Raises TensorError where the function fails, returns something else, or does not keep the shape.
        """
        leaf = log_pi.detach().clone().requires_grad_()
        arguments = (leaf, log_ref, log_old) if self.takes_old else (leaf, log_ref)
        try:
            value = self.fn(*arguments)
        except Exception as error:  # whatever the user's function raises is what the user must see
            raise TensorError(f"the function raised {type(error).__name__}: {error}") from error
        if not isinstance(value, Tensor):
            raise TensorError(f"the function must return a tensor, not {type(value).__name__}")
        if value.numel() != leaf.numel():
            shapes = f"{tuple(leaf.shape)}, not {tuple(value.shape)}"
            raise TensorError(f"the function must return the penalty of each token, shape {shapes} (no mean or sum)")
        if not value.requires_grad:
            return value.detach().reshape(leaf.shape), torch.zeros_like(leaf)
        (slope,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
        return value.detach().reshape(leaf.shape), torch.zeros_like(leaf) if slope is None else slope


def _takes_old(fn: PenaltyFunction) -> bool:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    if len(required) > 3 or len(positional) < 2:
        raise TensorError(
            f"the function must take (logp, ref_logp) or (logp, ref_logp, old_logp), not {len(required)} required parameters"
        )
    return len(required) == 3 or (len(positional) >= 3 and "old" in positional[2].name)
