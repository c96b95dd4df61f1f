"""Markdown from data: tables, code and prose that cannot break out of where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ACTIVE = re.compile(r"[\\`*_{}\[\]<>|~&]")
_STRESSED = re.compile(r"(?<![\w*])\*(\w[^*]*\w|\w)\*(?![\w*])")
_URL = re.compile(r"(https?://[^\s<>]+[^\s<>.,;:)])")
_ARXIV = re.compile(r"\barXiv (\d{4}\.\d{5})\b")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; columns that are empty throughout are left out.  Empty without rows."""
    cells = [[cell.replace("\n", " ") for cell in row] for row in rows]
    kept = [at for at in range(len(headers)) if any(row[at] for row in cells)]
    if not kept:
        return ""
    lines = [[headers[at] for at in kept], ["---"] * len(kept), *([row[at] for at in kept] for row in cells)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def prose(text: str) -> str:
    """Plain words as Markdown that shows them as they are, on one line."""
    return _inert(" ".join(text.split()))


def code(text: object) -> str:
    """A word of a language, inline.  HTML, since no run of backticks is safe in a table."""
    return f"<code>{_inert(' '.join(str(text).split()))}</code>"


def marked(text: str) -> str:
    """Prose of the catalogue, in which `words` are code and *words* are stressed; a star between words is a product."""
    parts = " ".join(text.split()).split("`")
    return "".join(code(part) if at % 2 else _stressed(part) for at, part in enumerate(parts))


def fence(text: str, language: str, title: str = "") -> str:
    """A block of code, fenced by more backticks than it holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    named = f' title="{title}"' if title else ""
    return f"{marks}{language}{named}\n{text.rstrip()}\n{marks}\n"


def linked(text: str) -> str:
    """Prose whose addresses and arXiv numbers are links."""
    parts = _URL.split(_ARXIV.sub(r"https://arxiv.org/abs/\1", text))
    return "".join(_link(part) if at % 2 else _inert(part) for at, part in enumerate(parts))


def paragraphs(text: str) -> str:
    """Text of the catalogue: paragraphs refilled, blocks of formulas and lists as they stand."""
    blocks = []
    for block in text.strip().split("\n\n"):
        if any(line.startswith((" ", "- ", "* ", "|")) for line in block.split("\n")):
            blocks.append(fence(block, "text"))
        else:
            blocks.append(marked(block) + "\n")
    return "\n".join(blocks)


def _link(address: str) -> str:
    host, _, number = address.rpartition("/abs/")
    shown = f"arXiv {number}" if host.endswith("//arxiv.org") else prose(address)
    return f"[{shown}]({address})"


def _inert(text: str) -> str:
    """Characters that mean something in Markdown or HTML as references to characters."""
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", text)


def _stressed(text: str) -> str:
    parts = _STRESSED.split(text)
    return "".join(f"<em>{_inert(part)}</em>" if at % 2 else _inert(part) for at, part in enumerate(parts))
