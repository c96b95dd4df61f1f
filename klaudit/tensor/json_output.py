"""What is measured, as plain data; numbers that are not finite become null, as JSON has none."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from klaudit.tensor.fingerprint_type import Fingerprint
from klaudit.tensor.numerics import Numeric
from klaudit.tensor.rollouts import Measurement
from klaudit.tensor.scale import ScaleReport
from klaudit.tensor.verification import Verification


def of_verification(found: Verification) -> str:
    """Format `klaudit-verify/1`."""
    plain = asdict(found)
    claims = [{**asdict(claim), "holds": claim.holds} for claim in found.claims]
    return _dumped({"format": "klaudit-verify/1", **plain, "claims": claims})


def of_fingerprint(found: Fingerprint, how: str) -> str:
    """Format `klaudit-fingerprint/1`."""
    return _dumped({"format": "klaudit-fingerprint/1", "how": how, **found.to_json()})


def of_measurement(found: Measurement, name: str) -> str:
    """Format `klaudit-rollouts/1`."""
    return _dumped({"format": "klaudit-rollouts/1", "file": name, **asdict(found)})


def of_scale(found: ScaleReport, numerics: Sequence[Numeric]) -> str:
    """Format `klaudit-scale/1`."""
    return _dumped(
        {
            "format": "klaudit-scale/1",
            **asdict(found),
            "broken": list(found.broken),
            "numerics": [asdict(each) for each in numerics],
        }
    )


def _dumped(plain: dict[str, Any]) -> str:
    return json.dumps(_finite(plain), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value
