"""Single TOML values, by the standard library's parser."""

from __future__ import annotations

import sys

from klaudit.model import Scalar, Unknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def toml_scalar(text: str) -> Scalar | Unknown:
    """The value of one TOML value as written (`1_000`, `inf`, `"a\\tb"`); dates and times stay text."""
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except (tomllib.TOMLDecodeError, ValueError):
        return Unknown((text,), text)
    return value if isinstance(value, (bool, int, float, str)) else text
