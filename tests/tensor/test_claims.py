"""The theory is asserted row by row, and the assertion can fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from klaudit.tensor import claims as module
from klaudit.tensor.claims import Claim, theory_claims, verdict_claims
from klaudit.tensor.configurations import GROUP_VARIANTS, sampled_rows, surrogate
from klaudit.tensor.group_claims import group_claims
from klaudit.tensor.laboratory import Laboratory
from klaudit.theory import TABLE, VARIANTS, Objective, Row, ScoreWeight, look_up


@pytest.fixture(scope="module")
def asserted(laboratory: Laboratory) -> list[Claim]:
    return [*theory_claims(laboratory), *group_claims(laboratory, 0)]


def test_every_statement_holds(asserted: list[Claim]) -> None:
    assert [claim for claim in asserted if not claim.holds] == []


@pytest.mark.parametrize("row", [*TABLE.values(), *VARIANTS.values()], ids=lambda row: row.id)
def test_every_row_is_asserted(row: Row, asserted: list[Claim]) -> None:
    says = [claim.says for claim in asserted if claim.about == row.id]
    assert any(row.verdict in text for text in says) or row.variant in ("group-mean", "leave-one-out")
    if row.objective is not None and row.variant not in GROUP_VARIANTS:
        assert any(f"descends {row.objective}" in text for text in says)
    if row.stale is not None:
        assert any(f"off-policy, descends {row.stale}" in text for text in says)


def test_what_is_exact_is_exact_to_1e_10(asserted: list[Claim]) -> None:
    exact = [claim for claim in asserted if not claim.at_least and claim.bound <= 1e-3]
    assert max(claim.residual for claim in exact) < 1e-10
    assert all(claim.bound <= 1e-10 for claim in exact)


K3 = look_up("k3", "loss", "pathwise")
WRONG = [
    replace(K3, weight=ScoreWeight.of(linear=1)),
    replace(K3, objective=Objective.of("KL(pi||ref)")),
    replace(K3, stale=Objective.of("KL(ref||pi)")),
    replace(K3, verdict="unbiased-per-token"),
    replace(K3, verdict="no-regularisation"),
    replace(look_up("k1", "loss", "pathwise"), verdict="no-gradient"),
    replace(look_up("k1", "loss", "pathwise"), verdict="biased", weight=ScoreWeight.of(constant=-1)),
    replace(look_up("k2", "loss", "pathwise"), verdict="unbiased"),
    replace(look_up("k1", "reward", "score"), verdict="unbiased-per-token"),
    replace(look_up("k1", "reward", "score"), verdict="biased"),
    replace(look_up("full", "reward", "score"), verdict="unbiased"),
    replace(VARIANTS["k3", "loss", "sequence-mean-ratio"], verdict="unbiased"),
    replace(VARIANTS["k3", "loss", "detached-ratio"], stale=Objective.of("E_old[k3]")),
]


@pytest.mark.parametrize("row", WRONG, ids=lambda row: f"{row.id}:{row.verdict}:{row.objective}:{row.weight}")
def test_a_wrong_row_is_noticed(row: Row, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_this() -> Iterator[Row]:
        yield row

    monkeypatch.setattr(module, "sampled_rows", only_this)
    found = [
        *module._weight_claims(row, laboratory), *module._objective_claims(row, laboratory), *module._sequence_claims(row, laboratory),
        *verdict_claims(row.id, row.verdict, surrogate(row), laboratory),
    ]  # fmt: skip
    assert [claim for claim in found if not claim.holds]


def test_every_sampled_row_has_a_surrogate() -> None:
    for row in sampled_rows():
        assert callable(surrogate(row))


def test_a_nan_never_holds() -> None:
    assert not Claim("x", "", float("nan"), 1.0).holds
    assert not Claim("x", "", float("nan"), 1.0, at_least=True).holds
