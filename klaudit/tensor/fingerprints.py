"""Identify a user's own penalty function, and assert in a unit test that it is unbiased."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from klaudit.model import Placement, Verdict
from klaudit.tensor.errors import TensorError
from klaudit.tensor.faults import arithmetic_notes
from klaudit.tensor.fingerprint_type import Fingerprint
from klaudit.tensor.probes import PenaltyFunction, TensorProbe
from klaudit.theory.identify import identify
from klaudit.theory.matching import Point


def fingerprint(fn: PenaltyFunction, placement: Placement = "loss") -> Fingerprint:
    """Identify `fn(logp, ref_logp)` or `fn(logp, ref_logp, old_logp)`, which returns the penalty of each token.

    `placement` says how the penalty is used: added to the `loss` with its gradient, or deducted from the `reward` as a number.
    Raises TensorError where the function fails, does not return one number a token, or is not finite near logp = ref_logp.
    """
    if placement not in ("loss", "reward"):
        raise TensorError(f'placement must be "loss" or "reward", not "{placement}"')
    probe = TensorProbe.of(fn)
    try:
        identity = identify(probe, placement, takes_old=probe.takes_old)
    except ValueError as error:
        raise TensorError(str(error)) from None
    found = Fingerprint.of(identity, placement, tuple(arithmetic_notes(probe, identity.estimator, placement)))
    if _mixes_tokens(probe):
        note = "a token's penalty depends on other tokens: all else is said of sequences of one token"
        return replace(found, verdict="unknown", descends="unknown", notes=(note, *found.notes))
    return found


def assert_unbiased(
    fn: PenaltyFunction, placement: Placement = "loss", per_token: bool = False, live: float = 10.0
) -> None:
    """Assert that the penalty descends KL(pi||ref), on-policy, for all |d| < `live` nats.

    Over whole sequences by default: only a rewarded k1 does.  With `per_token` the semi-gradient is enough (k2 in the loss and its kin).
    Raises AssertionError with the sampled table, TensorError where the function cannot be judged.
    """
    found = fingerprint(fn, placement)
    accepted: set[Verdict] = {"unbiased", "unbiased-per-token"} if per_token else {"unbiased"}
    problems = []
    if found.verdict not in accepted:
        hint = "; pass per_token=True if that is enough" if found.verdict == "unbiased-per-token" else ""
        problems.append(f"{found.summary()}{hint}")
    elif found.clamp is not None and not (found.clamp[0] <= -live and found.clamp[1] >= live):
        problems.append(
            f"{found.summary()}, but only for {found.clamp[0]:.4g} < d < {found.clamp[1]:.4g}, not for all |d| < {live:g}"
        )
    if problems:
        raise AssertionError("\n".join([*problems, *(f"note: {note}" for note in found.notes), found.table()]))


def _mixes_tokens(probe: TensorProbe) -> bool:
    """Whether a token's value or slope depends on the other token of its sequence, or on other sequences."""
    own, other = Point(0.4), Point(-0.7)
    names = ("log_pi", "log_ref", "log_old")
    together = [torch.tensor([[getattr(point, name) for point in (own, other)]], dtype=probe.dtype) for name in names]
    stacked = [tensor.T.contiguous() for tensor in together]
    alone = probe([own])[0]
    for tensors in (together, stacked):
        value, slope = probe.evaluate(*tensors)
        seen = float(value.flatten()[0]), float(slope.flatten()[0])
        if not all(
            math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9)
            for a, b in zip(seen, (alone.value, alone.slope), strict=True)
        ):
            return True
    return False
