"""Tensor checks: the theory proved on tensors, users' own penalties identified, rollouts measured.  Needs `klaudit[tensor]`.

from klaudit.tensor import assert_unbiased, fingerprint

def test_my_penalty():
    assert_unbiased(my_penalty, placement="reward")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaudit.tensor.errors import TensorError
    from klaudit.tensor.fingerprint_type import Fingerprint
    from klaudit.tensor.fingerprints import assert_unbiased, fingerprint

__all__ = ["Fingerprint", "TensorError", "assert_unbiased", "fingerprint"]

_HOMES = {
    "Fingerprint": "klaudit.tensor.fingerprint_type",
    "TensorError": "klaudit.tensor.errors",
    "assert_unbiased": "klaudit.tensor.fingerprints",
    "fingerprint": "klaudit.tensor.fingerprints",
}


def __getattr__(name: str) -> object:
    """Load torch only when something that needs it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
