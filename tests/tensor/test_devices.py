"""CPU and CUDA agree; where there is no device this is reported as skipped, with the reason."""

from __future__ import annotations

import pytest
import torch

from klaudit.tensor.backend import choose_device, device_name, exact_dtype, seeded, tolerance
from klaudit.tensor.claims import theory_claims
from klaudit.tensor.configurations import sampled_rows, stale_surrogate, surrogate, value
from klaudit.tensor.errors import TensorError
from klaudit.tensor.gradients import expected_gradient, moments, objective_gradient
from klaudit.tensor.groups import Groups, penalty_gradient
from klaudit.tensor.inner_steps import Bandit, in_loss, penalty_distances, rewarded
from klaudit.tensor.laboratory import Laboratory
from klaudit.tensor.numerics import check_numerics
from klaudit.tensor.objectives import per_position
from klaudit.tensor.scale import Size, check_scale
from klaudit.tensor.toy import CLOSE_5, drawn
from klaudit.tensor.verification import Verification, verify
from klaudit.theory import Row

CUDA = torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not CUDA, reason="no CUDA device: torch.cuda.is_available() is false")


@pytest.mark.gpu
@needs_cuda
def test_exact_rows_agree_on_cuda(verification: Verification) -> None:
    found = verify(torch.device("cuda"))
    assert not found.broken
    exact = [(a, b) for a, b in zip(verification.rows, found.rows, strict=True) if a.exact]
    for own, other in exact:
        assert own.gradient_bias == pytest.approx(other.gradient_bias, rel=1e-9, abs=1e-10)


@pytest.mark.gpu
@needs_cuda
def test_scale_on_cuda_agrees_with_the_cpu() -> None:
    size = Size(tokens=64, vocabulary=4096, dtype=torch.float32)
    cpu, cuda = (check_scale(torch.device(name), size) for name in ("cpu", "cuda"))
    assert not cuda.broken and not cuda.reduced
    for own, other in zip(cpu.rows, cuda.rows, strict=True):  # other draws, so only the statistics agree
        assert own.gradient_bias == pytest.approx(other.gradient_bias, rel=0.3, abs=1e-3)


@pytest.mark.gpu
@needs_cuda
def test_numerics_on_cuda() -> None:
    for case in check_numerics(torch.device("cuda")):
        if "remedy" in case.case:
            assert case.measured["gradient finite"] == float("clamp of the log-ratio" in case.case)


@pytest.mark.gpu
@needs_cuda
def test_seeds_reproduce_on_cuda() -> None:
    first, second = (drawn(CLOSE_5, 2, 100, seeded(3, torch.device("cuda"))).tokens for _ in range(2))
    assert torch.equal(first, second)


def test_lower_precision_agrees_within_its_tolerance(laboratory: Laboratory) -> None:
    single = Laboratory(
        *(
            tuple(
                type(bench).of(bench.kl, bench.off_policy.to(torch.device("cpu"), torch.float32)) for bench in benches
            )
            for benches in (laboratory.tokens[1:2], laboratory.sequences[1:2])
        )
    )
    assert single.tolerance == tolerance(torch.float32)
    assert [claim for claim in theory_claims(single) if not claim.holds] == []


def test_devices_are_chosen_and_named() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if CUDA else "cpu")
    assert device_name(torch.device("cpu")).startswith("cpu (1 thread")
    assert exact_dtype(torch.device("mps")) == torch.float32


@pytest.mark.skipif(CUDA, reason="there is a CUDA device")
def test_an_absent_device_is_said_to_be() -> None:
    with pytest.raises(TensorError, match="no CUDA device"):
        choose_device("cuda")


META = torch.device(
    "meta"
)  # shapes without numbers: stands in for an accelerator, since it refuses tensors left on the CPU


@pytest.mark.parametrize("row", list(sampled_rows()), ids=lambda row: row.id)
def test_nothing_is_left_on_the_cpu(row: Row, laboratory: Laboratory) -> None:
    for bench in (laboratory.tokens[0], laboratory.sequences[0]):
        outcomes = bench.off_policy.to(META, torch.float64)
        for view in (outcomes.on_policy(), outcomes.off_policy()):
            assert moments(surrogate(row), view).mean.device == META
            assert expected_gradient(stale_surrogate(row), view).device == META
            assert value(row, view).device == META
            for objective in filter(None, (row.objective, row.stale)):
                assert objective_gradient(per_position(objective), view).device == META


def test_groups_and_bandits_stay_on_their_device() -> None:
    policy = torch.empty(4, dtype=torch.float64, device=META)
    for normalisation in ("none", "mean", "leave-one-out", "std"):
        found = penalty_gradient(Groups.all(4, 3, META), policy, policy, policy, 0.1, normalisation)
        assert found.device == META
    bandit = Bandit.drawn(2).to(META, torch.float64)
    for loss in (rewarded("k1", clip=True), in_loss("k3", "importance-weighted")):
        assert penalty_distances(loss, bandit, steps=2)[-1].bias.device == META
