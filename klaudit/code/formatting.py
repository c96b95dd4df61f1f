"""Python text without its formatting."""

from __future__ import annotations

import ast
import io
import tokenize

_LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)
_CLOSING = frozenset({")", "]", "}"})


def canonical(expression: str) -> str:
    """The same text for however an expression is laid out: its tokens, without comments, kinds of quotes and trailing commas."""
    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(f"({expression}\n)").readline):
            if token.type in _LAYOUT:
                continue
            if token.string in _CLOSING and words[-1:] == [","]:
                words.pop()
            words.append(_plain(token.string) if token.type == tokenize.STRING else token.string)
    except (tokenize.TokenError, SyntaxError):  # not whole by itself
        return " ".join(expression.split())
    return " ".join(words[1:-1])


def _plain(literal: str) -> str:
    try:
        return repr(ast.literal_eval(literal))
    except (ValueError, SyntaxError):  # an f-string
        return literal
