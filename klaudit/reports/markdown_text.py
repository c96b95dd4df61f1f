"""Markdown (GitHub's) in which text from scanned files is text: no link, image, HTML, mention, reference or table of its own.

What is not plain words stands in code spans, where GitHub and GitLab look for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from klaudit.reports.visible import visible

_Kind: TypeAlias = Literal["word", "code", "quoted"]

_WORD = re.compile(r"\(*(?:[A-Za-z]+(?:['-][A-Za-z]+)*|k[123]|pi_(?:ref|old))\)*[,.;:]?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?[,.;:%]?")
_COMMIT = re.compile(r"[0-9a-f]{7,}")  # forges make links of these
_TOKEN = re.compile(r"\(*`[^`]+`[).,;:]*(?!\S)|\S+")
_QUOTED = re.compile(r"\(*`[^`]+`[).,;:]*")
_OPERATOR = re.compile(r"[=+*/<>-]+")
_TICKS = re.compile("`+")


def words(text: str, *, in_table: bool = True) -> str:
    """Prose on one line that may quote anything: words and numbers as they are, all else as code, as is what stands in backticks."""
    runs: list[tuple[_Kind, list[str]]] = []
    for token in _TOKEN.findall(visible(text)):
        kind = _kind(token)
        before, run = runs[-1] if runs else (None, [])
        if token == "=" and before == "word":
            run.append(token)  # `log pi = f(x)`: what is named so is prose
        elif (before == "code" and _goes_on(run[-1], token, kind)) or before == kind == "word":
            run.append(token)
        else:
            runs.append((kind, [token]))
    return " ".join(" ".join(run) if kind == "word" else _code_in_prose(" ".join(run), in_table) for kind, run in runs)


def code(text: str, *, in_table: bool = True) -> str:
    """A code span of any text on one line."""
    shown = visible(text)
    if not shown.strip():
        return f"`{shown}`" if shown else ""
    fence = "`" * (max((len(ticks) for ticks in _TICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    span = f"{fence}{pad}{shown}{pad}{fence}"
    return span.replace("|", "\\|") if in_table else span


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table; the cells are Markdown already."""
    return [line(headers), line(["---"] * len(headers)), *map(line, rows)]


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def _kind(token: str) -> _Kind:
    if len(token) > 1 and _QUOTED.fullmatch(token):
        return "quoted"
    is_plain = _WORD.fullmatch(token) or _NUMBER.fullmatch(token)
    return "word" if is_plain and not _COMMIT.fullmatch(token.strip("().,;:")) else "code"


def _goes_on(before: str, token: str, kind: _Kind) -> bool:
    """Whether code goes on with a token; `w(d) = 1 - exp(-d)` is one, with its number."""
    if kind == "code":
        return not token.startswith("(") and not before.endswith(";")
    is_operand = len(token.rstrip(",.;:")) == 1 or _NUMBER.fullmatch(token) is not None
    return kind == "word" and is_operand and _OPERATOR.fullmatch(before) is not None


def _code_in_prose(text: str, in_table: bool) -> str:
    """Code without the brackets and the punctuation around it."""
    opened = text.lstrip("(")
    inner = opened.rstrip(").,;:")
    after = opened[len(inner) :]
    own = min(
        max(inner.count("(") - inner.count(")"), 0), len(after) - len(after.lstrip(")"))
    )  # `exp(-d)` keeps its own
    inner, after = inner + after[:own], after[own:]
    before = text[: len(text) - len(opened)]
    if len(inner) > 2 and inner[0] == inner[-1] == "`" and "`" not in inner[1:-1]:
        inner = inner[1:-1]
    return f"{before}{code(inner, in_table=in_table)}{after}" if inner else code(text, in_table=in_table)
