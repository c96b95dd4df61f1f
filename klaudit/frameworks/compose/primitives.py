"""What an unquoted word means in Hydra's override grammar and OmegaConf's interpolation grammar, which agree on it."""

from __future__ import annotations

import re

from klaudit.model import Scalar
from klaudit.patterns import rare

_UNSIGNED = r"(?:0|[1-9](?:_?[0-9])*)"
_POINT = rf"(?:{_UNSIGNED}\.|{_UNSIGNED}?\.[0-9](?:_?[0-9])*)"
_EXPONENT = rf"(?:{_POINT}|{_UNSIGNED})[eE][+-]?[0-9](?:_?[0-9])*"
_INT = re.compile(rf"[+-]?{_UNSIGNED}")
_FLOAT = rare(rf"[+-]?(?:{_EXPONENT}|{_POINT}|[Ii][Nn][Ff]|[Nn][Aa][Nn])")
_NAMES: dict[str, Scalar] = {"true": True, "false": False, "null": None}
ESCAPE = r"\\[\\()\[\]{}:=, \t]"  # a backslash escapes only what the grammar would otherwise act on
_ESCAPE = re.compile(rf"(\$\{{[^}}]+\}})|{ESCAPE}")  # nothing inside an interpolation is an escape


class GrammarError(ValueError):
    """Text that the grammar does not know; `at` is the offset of the character where it fails."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def primitive(text: str) -> Scalar:
    """The value of an unquoted word: a number, true, false or null in any case, else text with its escapes taken out."""
    lowered = text.lower()
    if lowered in _NAMES:
        return _NAMES[lowered]
    if text[:1] in "+-.0123456789iInN":
        try:
            if _INT.fullmatch(text):
                return int(text)
            if _FLOAT.fullmatch(text):
                return float(text)
        except ValueError:  # more digits than Python converts
            return text
    return unescape(text)


def unescape(text: str) -> str:
    """The text without the backslashes that take away a character's meaning."""
    return _ESCAPE.sub(lambda match: match[1] or match[0][1], text) if "\\" in text else text


def without_trailing_space(word: str) -> str:
    """Space before a comma or bracket belongs to that, unless it is escaped or follows a colon."""
    stripped = word.rstrip(" \t")
    if len(stripped) == len(word):
        return word
    bare = stripped.removesuffix(":")
    is_escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    if bare == stripped:
        return word[: len(stripped) + is_escaped]
    return stripped if is_escaped else word
