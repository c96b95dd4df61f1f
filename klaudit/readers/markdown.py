"""Fenced code in Markdown, as sources in their own languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from klaudit.readers.document import Embedded
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.source import Source

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_OPENING = re.compile(
    rb"(?P<prefix>(?:[ \t>]|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))*)(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)"
)
_LANGUAGE = re.compile(r"\W*([\w+#-]+)")
_LANGUAGES = {
    **dict.fromkeys(("sh", "bash", "shell", "zsh", "console", "shell-session", "shellsession", "terminal"), "sh"),
    **dict.fromkeys(("python", "py", "python3", "pycon", "ipython"), "python"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    "json": "json",
    "toml": "toml",
    "ini": "ini",
}
_PROMPTS = {
    "sh": (
        re.compile(rb"[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]+@[\w.:~/-]+)?[$%#][ \t]+(?=\S)"),
        re.compile(rb"[ \t]*>[ \t]"),
    ),
    "python": (re.compile(rb"[ \t]*>>> ?"), re.compile(rb"[ \t]*\.\.\. ?")),
}


class _Fence(Struct):
    language: str
    line: int
    prefix: bytes
    mark: bytes
    lines: list[tuple[int, int]]


def read_markdown(source: Source) -> tuple[Embedded, ...]:
    """The fenced blocks whose info string names a language we read; prompts are left out, and what was printed below them."""
    found = []
    for fence in _fences(source.data):
        text = _content(source, fence)
        if text.data.strip():
            found.append(Embedded(text, fence.language, where=f"line {fence.line}"))
    return tuple(found)


def _fences(data: bytes) -> Iterator[_Fence]:
    fence: _Fence | None = None
    at, number = 0, 0
    while at < len(data):
        line = _LINE.match(data, at)
        if line is None or line.end() == at:
            break
        number += 1
        opening = _OPENING.match(data, at, line.end())
        if fence is None:
            if opening is not None and not (opening["fence"].startswith(b"`") and b"`" in opening["info"]):
                name = _LANGUAGE.match(opening["info"].decode("utf-8", "replace"))
                language = _LANGUAGES.get(name[1].lower(), "") if name is not None else ""
                fence = _Fence(language, number, opening["prefix"], opening["fence"], [])
        elif opening is not None and opening["fence"].startswith(fence.mark) and not opening["info"].strip():
            if fence.language:
                yield fence
            fence = None
        else:
            fence.lines.append((at, line.end()))
        at = line.end()
    if fence is not None and fence.language:
        yield fence


def _content(source: Source, fence: _Fence) -> Source:
    """The block's lines without the quote marks and indentation of the fence, and without prompts where it shows a session."""
    lines = [(_inside(source.data, start, end, fence.prefix), end) for start, end in fence.lines]
    prompts = _PROMPTS.get(fence.language)
    excerpt = Excerpt(source)
    session = prompts is not None and any(_is_prompt(source.data, start, end, prompts[0]) for start, end in lines)
    continued = False
    for start, end in lines:
        if prompts is not None and session:
            first, following = prompts
            match = first.match(source.data, start, end) or (
                following.match(source.data, start, end) if continued else None
            )
            if match is None and not (continued and fence.language == "sh"):
                continued = False
                continue  # printed by the command above
            start = match.end() if match is not None else start
            line = source.data[start:end].rstrip(b"\r\n")
            continued = fence.language == "python" or line.endswith(b"\\")
        excerpt.copy(start, end)
    return excerpt.embed()


def _is_prompt(data: bytes, start: int, end: int, prompt: re.Pattern[bytes]) -> bool:
    """Whether a line shows a prompt; `# ` alone is a comment far more often than root's prompt."""
    match = prompt.match(data, start, end)
    return match is not None and not match.group().strip().startswith(b"#")


def _inside(data: bytes, start: int, end: int, prefix: bytes) -> int:
    """Where a line's content begins: after the quote marks and at most the indentation that stand before the fence."""
    at = start
    for wanted in prefix:
        if at >= end or data[at] in b"\r\n":
            break
        if data[at] == wanted or (wanted not in b" \t>" and data[at] in b" \t"):
            at += 1
        elif data[at] not in b" \t>":
            break
    return at
