"""The whole of `klaudit verify`: every statement of the theory asserted, and the table of what each configuration does."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from klaudit.tensor import regimes
from klaudit.tensor.backend import device_name, dtype_name
from klaudit.tensor.claims import Claim, theory_claims
from klaudit.tensor.group_claims import group_claims
from klaudit.tensor.laboratory import Laboratory
from klaudit.tensor.rows import VerifyRow
from klaudit.tensor.toy_rows import toy_rows

Progress = Callable[[str], None]
_SEQUENCES = 12  # recurrent policies a distance: what takes longest


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome: rows in a fixed order, and every claim with its residual."""

    device: str
    dtype: str
    seed: int
    rows: tuple[VerifyRow, ...]
    claims: tuple[Claim, ...]
    seconds: float

    @property
    def broken(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if not claim.holds)


def verify(device: torch.device, *, seed: int = 0, progress: Progress = lambda stage: None) -> Verification:
    """Compute everything on `device`; `progress` is told each stage as it begins."""
    started = time.perf_counter()
    progress("enumerating policies")
    laboratory = Laboratory.at(device, seed=seed, sequences=_SEQUENCES)
    progress("asserting the theory")
    claims = [*theory_claims(laboratory), *group_claims(laboratory, seed)]
    rows: list[VerifyRow] = []
    for stage, of_stage in _stages(laboratory, seed):
        progress(stage)
        rows.extend(of_stage)
    if laboratory.dtype == torch.float64:
        progress("sampling the minimal model")
        for row, claim in toy_rows(seed, device):
            rows.append(row)
            claims.append(claim)
    claims += [
        Claim(row.configuration, f"{row.regime}: every number is finite", math.nan, 0.0)
        for row in rows
        if not row.is_finite
    ]
    return Verification(
        device_name(device),
        dtype_name(laboratory.dtype),
        seed,
        tuple(rows),
        tuple(claims),
        time.perf_counter() - started,
    )


def _stages(laboratory: Laboratory, seed: int) -> Iterator[tuple[str, Iterator[VerifyRow]]]:
    yield "single tokens", regimes.single_tokens(laboratory)
    yield "sequences", regimes.sequences(laboratory)
    yield "groups", regimes.groups(laboratory, seed)
    yield "inner steps", regimes.inner_steps(laboratory, seed)
