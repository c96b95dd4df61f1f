"""The table of the configuration's keys: those that the program reads, each linked to its paragraph."""

from __future__ import annotations

import json
from collections.abc import Mapping

from documentation.markdown import code, table
from klaudit.configuration import Options
from klaudit.configuration_file import KEYS

_SHOWN = {"jobs": "as many as there are cores", "min-confidence": '"low"'}


def table_of_keys() -> str:
    """Key, linked to the heading that explains it, and its default."""
    defaults = Options()
    rows = [(f"[{code(key)}](#{key})", _default(key, getattr(defaults, field))) for key, field in KEYS.items()]
    return table(("key", "default"), rows)


def _default(key: str, value: object) -> str:
    if key in _SHOWN:
        return _SHOWN[key]
    if value is None or value == () or (isinstance(value, Mapping) and not value):
        return "none"
    return code(json.dumps(value))
