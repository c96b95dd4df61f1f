"""JSON that may go anywhere: to every reader of JSON, to a terminal, and to a log whose lines a CI system takes commands from."""

from __future__ import annotations

import json
import re
from typing import TypeAlias

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"

_SURROGATES = re.compile("[\ud800-\udfff]")


def dumps(value: Json) -> str:
    """JSON in ASCII: no control or bidirectional character reaches a terminal, and every encoding can hold it.

    `##` begins a command in the log of some CI systems (`##[...]`, `##vso[...]`), wherever it stands in a line; it is written as an
    escape, which readers of JSON undo.
    """
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("##", "#\\u0023")


def whole(text: str) -> str:
    """Text that every reader of JSON accepts: bytes of a name that are no UTF-8 (lone surrogates here) become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
