"""Tensor tests need torch; one thread each, since small tensors gain nothing from more and neighbours lose."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'klaudit[tensor]'")

from klaudit.tensor.laboratory import Laboratory  # noqa: E402 (only where torch is)
from klaudit.tensor.verification import Verification, verify  # noqa: E402

torch.set_num_threads(1)  # for fixtures of the session


@pytest.fixture(autouse=True)
def single_thread() -> None:
    torch.set_num_threads(1)  # whatever the test before left


@pytest.fixture(scope="session")
def laboratory() -> Laboratory:
    return Laboratory.at(torch.device("cpu"), sequences=6)


@pytest.fixture(scope="session")
def verification() -> Verification:
    return verify(torch.device("cpu"))
