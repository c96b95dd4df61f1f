"""Markdown (GitHub's) in which text from scanned files is text: no link, image, HTML, mention, reference or table of its own.

What is not plain words stands in code spans, where GitHub and GitLab look for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from klaudit.reports.visible import visible

_WORD = re.compile(r"\(*(?:[A-Za-z]+(?:['-][A-Za-z]+)*|k[123])\)*[,.;:]?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?[,.;:%]?")
_COMMIT = re.compile(r"[0-9a-f]{7,}")  # forges make links of these
_OPERATOR = re.compile(r"[=+*/<>-]+")
_TICKS = re.compile("`+")


def words(text: str, *, in_table: bool = True) -> str:
    """Prose on one line that may quote anything: words and numbers as they are, all else as code."""
    runs: list[tuple[bool, list[str]]] = []
    for token in visible(text).split(" "):
        if not token:
            continue
        is_code, run = runs[-1] if runs else (False, [])
        goes_on = is_code and ((_is_code(token) and not token.startswith("(")) or _is_operand(token, run[-1]))
        if goes_on or (run and not is_code and not _is_code(token)):
            run.append(token)
        else:
            runs.append((_is_code(token), [token]))
    told = [(is_code, " ".join(run)) for is_code, run in runs]
    return " ".join(_code_in_prose(run, in_table) if is_code else run for is_code, run in told)


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
    lines = [_line(headers), _line(["---"] * len(headers))]
    return [*lines, *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _is_code(token: str) -> bool:
    is_plain = _WORD.fullmatch(token) or _NUMBER.fullmatch(token)
    return not is_plain or _COMMIT.fullmatch(token.strip("().,;:")) is not None


def _is_operand(token: str, before: str) -> bool:
    """Whether a number or letter goes on with a formula: `w(d) = 1 - exp(-d)` is one."""
    return _OPERATOR.fullmatch(before) is not None and (
        len(token.rstrip(",.;:")) == 1 or bool(_NUMBER.fullmatch(token))
    )


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
    return f"{before}{code(inner, in_table=in_table)}{after}" if inner else code(text, in_table=in_table)
