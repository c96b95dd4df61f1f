"""A function interpreted from its source: the seam to the evaluator of the code analysis."""

from __future__ import annotations

from klaudit.model import Placement
from klaudit.tensor.errors import TensorError
from klaudit.tensor.fingerprint_type import Fingerprint
from klaudit.tensor.user_function import Target


def interpret(target: Target, placement: Placement) -> Fingerprint:
    """Fingerprint a function without running any of its code.  Raises TensorError where its source cannot be interpreted."""
    raise TensorError(f"{target.function} cannot be interpreted yet; --run imports and calls it")
