"""Values as they are written: in commands, in Python, in YAML, JSON and TOML."""

from __future__ import annotations

import json
import re
from typing import Literal, TypeAlias

from klaudit.fixes.page import CannotEditError
from klaudit.model import Unknown, Value
from klaudit.readers.document import ScalarNode
from klaudit.readers.scalars import resolve_scalar

Language: TypeAlias = Literal["word", "python", "yaml", "json", "toml"]

_BOOLEANS = re.compile(rb"[=: \t](True|False|true|false)\b")


def spell(value: Value, language: Language, *, capitals: bool = True) -> str:
    """The value as text.  `capitals` chooses between `True` and `true` where a language has both.

    Raises CannotEditError for what no recipe holds: lists, mappings, unknown values.
    """
    if isinstance(value, bool):
        return str(value) if language == "python" or (language == "word" and capitals) else str(value).lower()
    if isinstance(value, int | float):
        return _number(value, language)
    if value is None:
        return {"python": "None", "toml": '""'}.get(language, "null")
    if isinstance(value, Unknown):
        raise CannotEditError(f"the value of {', '.join(value.hangs_on)} is not known and cannot be copied")
    if not isinstance(value, str):
        raise CannotEditError(f"{value!r} is no plain value")
    if language == "word":
        return value
    if language == "yaml" and _is_plain_in_yaml(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def prefers_capitals(data: bytes, otherwise: bool) -> bool:
    """Whether a text writes its booleans `True` and `False`; `otherwise` where it has none."""
    found = [bool(match[1][:1].isupper()) for match in _BOOLEANS.finditer(data)]
    return 2 * sum(found) >= len(found) if found else otherwise


def _number(value: float, language: Language) -> str:
    text = repr(value)
    if "e" in text and language in ("yaml", "toml"):  # YAML 1.1 reads 1e-05 as text, TOML wants no such zero
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return text


def _is_plain_in_yaml(value: str) -> bool:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+.-]*", value) is None:
        return False
    is_text: bool = isinstance(resolve_scalar(ScalarNode(value, True, 0, 0), "yaml11"), str)
    return is_text
