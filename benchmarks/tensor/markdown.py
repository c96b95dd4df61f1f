"""Tables in Markdown, with numbers as short as they are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

Cell = str | float | None


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    lines = [head, ["---"] * len(head), *([cell(each) for each in row] for row in rows)]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)


def cell(value: Cell) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "-"
    if abs(value) < 1e-9:
        return "0"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
