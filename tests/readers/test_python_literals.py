"""Which bytes spell which characters of a string literal."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers.python.lexer import LexError, StringToken, lexemes, string_at
from klaudit.readers.python.literals import plain, spell

texts = st.text(st.characters(codec="utf-8"), max_size=12)


def quoted(text: str, quote: str, style: str) -> str:
    """One of the ways to write `text` as a literal."""
    if style == "escapes":
        body = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text)
    elif style == "octal":
        body = "".join(f"\\{ord(c):03o}" if ord(c) < 256 else c for c in text)
    else:
        body = text.replace("\\", "\\\\").replace(quote[0], f"\\{quote[0]}")
        if len(quote) == 1:
            body = body.replace("\n", "\\n").replace("\r", "\\r")
        else:
            body = body.replace("\r", "\\r")
    return f"{quote}{body}{quote}"


literals = st.builds(
    quoted, texts, st.sampled_from(["'", '"', "'''", '"""']), st.sampled_from(["plain", "escapes", "octal"])
)


@settings(max_examples=150, deadline=None)
@given(st.lists(literals, min_size=1, max_size=3), st.sampled_from([" ", "\n  ", "  # a 'comment'\n", " \\\n"]))
def test_fragments_spell_the_value(parts: list[str], between: str) -> None:
    code = "(" + between.join(parts) + ")"
    data = code.encode("utf-8", "surrogatepass")
    try:
        value = ast.literal_eval(code)
    except (ValueError, SyntaxError):
        return  # NUL and the like
    fragments = plain(data, 1, len(data) - 1, value)
    assert "".join(fragment.text or "" for fragment in fragments) == value
    for fragment in fragments:
        spelled = data[fragment.start : fragment.end]
        assert not fragment.verbatim or spelled.decode() == fragment.text
        assert (
            fragment.verbatim or fragment.text is None or len(fragment.text) <= 2 or fragment.text in spelled.decode()
        )
    assert [f.start for f in fragments] == sorted(f.start for f in fragments)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r"'a\'b'", "a'b"),
        (r"'\x41\102\N{DIGIT ONE}\u00e9\U0001f600'", "AB1é😀"),
        ("'a\\\nb'", "ab"),
        ("'a\\\r\nb'", "ab"),
        ("'''a\r\nb'''", "a\nb"),
        (r"r'a\nb'", r"a\nb"),
        (r"'\d\8'", r"\d\8"),
        (r"'\777'", "ǿ"),
        ("u'x'", "x"),
        ("''", ""),
        ("'' ''", ""),
    ],
)
def test_escapes(literal: str, value: str) -> None:
    fragments = spell(literal.encode(), 0, len(literal.encode()))
    assert fragments is not None
    assert "".join(fragment.text or "" for fragment in fragments) == value


@pytest.mark.parametrize(
    ("literal", "texts"),
    [
        ("f'a{b}c'", ["a", None, "c"]),
        ("f'{{a}}'", ["{", "a", "}"]),
        ("f'{a!r:>{width}}'", [None]),
        ("f'{d[\"k\"]}'", [None]),
        ('f"{d["k"]}"', [None]),
        ("f'{ {1: 2}[1] }'", [None]),
        ("f'{x:{y:{z}}}'", [None]),
        ("f'{a}' 'b' f'{c}'", [None, "b", None]),
        (r"f'\N{BULLET}{a}'", ["•", None]),
        (r"rf'\{a}'", ["\\", None]),
        ("f'{(lambda: \"}\")()}'", [None]),
        ("f'''{\na\n}'''", [None]),
    ],
)
def test_fields(literal: str, texts: list[str | None]) -> None:
    fragments = spell(literal.encode(), 0, len(literal.encode()))
    assert fragments is not None
    assert [fragment.text for fragment in fragments] == texts
    for fragment in fragments:
        if fragment.text is None:
            assert literal.encode()[fragment.start : fragment.start + 1] == b"{"
            assert literal.encode()[fragment.end - 1 : fragment.end] == b"}"


@pytest.mark.parametrize("code", ["'abc", "'''abc'", "f'{a", "f'{a)}'", "'a\nb'", "f'" + "{f'" * 40])
def test_what_does_not_end(code: str) -> None:
    with pytest.raises(LexError):
        string_at(code.encode(), 0)
    assert spell(code.encode(), 0, len(code)) is None


def test_bytes_are_no_text() -> None:
    assert spell(b"b'x'", 0, 4) is None


def test_lexemes_of_a_line() -> None:
    code = b"x = ('a' 'b')  # c 'd'\nif\"e\": \\\n pass"
    seen = [(t.kind if not isinstance(t, StringToken) else "string", code[t.start : t.end]) for t in lexemes(code)]
    assert seen == [
        ("bracket", b"("),
        ("string", b"'a'"),
        ("string", b"'b'"),
        ("bracket", b")"),
        ("comment", b"# c 'd'"),
        ("newline", b"\n"),
        ("string", b'"e"'),
        ("joined", b"\\\n"),
    ]
