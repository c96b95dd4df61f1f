"""Decoding, positions, newer grammar, and what cannot be read."""

from __future__ import annotations

import sys

import pytest
from python_reading import call, read, values

from klaudit.readers.python import read_python
from klaudit.readers.python.grammar import in_older_grammar
from klaudit.readers.source import Source, UnreadableError


@pytest.mark.parametrize(
    "data",
    [
        b"Config(beta=0.04)\n",
        b"\xef\xbb\xbfConfig(beta=0.04)\n",
        b"x = 1\r\nConfig(beta=0.04)\r\n",
        b"x = '''\r\n\r\n'''\r\nConfig(\r\n  beta=0.04)",
        b"x = 1\x0c\n\x0cConfig(beta=0.04)\n",
        b"if 1:\n\tConfig(\tbeta=0.04)\n",
        b"x = \\\n  1\nConfig(beta=\\\n0.04)\n",
        "s = 'é€😀'; Config(beta=0.04)\n".encode(),
        "# -*- coding: utf-8 -*-\ns = 'é'; Config(beta=0.04)\n".encode(),
        b"#!/usr/bin/env python\n# vim: set fileencoding=utf8 :\nConfig(beta=0.04)\n",
    ],
)
def test_spans_point_into_the_file(data: bytes) -> None:
    (setting,) = call(data, "Config").settings
    assert data[setting.value_span.start : setting.value_span.end] == b"0.04"
    assert data[setting.span.start : setting.span.end].replace(b"\\\n", b"") == b"beta=0.04"


def test_lone_carriage_returns_end_lines() -> None:
    (made,) = read_python(Source("x.py", b"x = 1\rConfig(beta=0.04)\r")).objects
    assert (made.settings[0].value_span.start, made.settings[0].value_span.end) == (18, 22)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "gb2312", "shift_jis", "iso-8859-15"])
def test_other_encodings_keep_the_bytes_of_the_file(encoding: str) -> None:
    text = {"gb2312": "中文", "shift_jis": "日本"}.get(encoding, "é")
    data = f"# coding: {encoding}\nConfig(name='{text}', beta=0.04)  # {text}\n".encode(encoding)
    name, beta = read_python(Source("x.py", data)).objects[0].settings
    assert name.value == text
    assert data[name.value_span.start : name.value_span.end].decode(encoding) == f"'{text}'"
    assert data[beta.value_span.start : beta.value_span.end] == b"0.04"


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"x = 1\ny = '\xff'\n", "not UTF-8: byte 0xff", 2),
        (b"# coding: ascii\ny = '\xff'\n", "not UTF-8", 2),
        (b"# coding: martian\ny = '\xff'\n", "unknown encoding martian", 1),
        (b"# coding: rot13\ny = '\xff'\n", "unknown encoding rot13", 1),
        (b"# coding: utf-7\ny = '\xff'\n", "utf-7", 1),
        (b"# coding: shift_jis\ny = '\xff'\n", "not shift-jis", 1),
        (b"x = 1\nprint 'two'\n", "not Python", 2),
        (b"x = (\n\n\n", "not Python", 1),
        (b"x = 'abc\n", "not Python", 1),
        (b"x = 1\x00\n", "null", None),
        (b"\xff\xfeC\x00\n\x00", "not UTF-8", 1),
        (b"-" * 100_000 + b"1", "nested too deep", None),
        (b"a" + b".b" * 100_000, "nested too deep", None),
        (b"1" + b"+1" * 100_000, "nested too deep", None),
        (b"(" * 300 + b")" * 300, "not Python", 1),
        (
            b"f(" * 90 + b")" * 90 + b"\nif 1:\n" + b"".join(b" " * i + b"if 1:\n" for i in range(1, 130)),
            "not Python",
            None,
        ),
        (b"#" * 6_000_000, "larger than", None),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, message: str, line: int | None) -> None:
    with pytest.raises(UnreadableError, match=message) as raised:
        read_python(Source("x.py", data))
    assert line is None or raised.value.line == line


@pytest.mark.parametrize(
    "code",
    [
        'x = f"{d["k"]}"',
        'x = f\'{", ".join(names)}\' f"{a!r:>{width}}"',
        "x = f'{'\\n'.join(a)}'",
        'x = f"{\n  d["k"]  # a comment\n}"',
        'x = f"""{f"{f"{1}"}"}"""',
        'x = t"hello {name}"',
        "type Pair[T] = tuple[T, T]",
        "def first[T: (int, str)](x: list[T]) -> T: return x[0]",
        "class Box[T, *Ts]:\n    pass",
        "try:\n    pass\nexcept ValueError, KeyError:\n    pass",
    ],
)
def test_newer_grammar_does_not_lose_the_file(code: str) -> None:
    made = call(f"BETA = 0.04\n{code}\nConfig(beta=BETA)\n", "Config")
    assert values(made) == {"beta": 0.04}


def test_newer_grammar_is_blanked_in_place() -> None:
    code = 'x = f"{d["k"]}" + "ü" + f"{y}"\ndef f[T](a): pass\ntype A = int\n'.encode()
    older, blanked = in_older_grammar(code)
    assert len(older) == len(code)
    assert older.splitlines()[0] == 'x = "_________" + "ü" + f"{y}"'.encode()
    assert older.splitlines()[1:] == [b"def f   (a): pass", b"A      = int"]
    assert blanked == {4}


def test_an_fstring_that_was_blanked_is_unknown_but_for_its_text() -> None:
    made = call('Config(name=f"run-{d["k"]}")', "Config")
    assert sys.version_info >= (3, 12) or values(made)["name"].text == 'run-{d["k"]}'  # type: ignore[union-attr]


def test_long_sums_of_texts_are_read() -> None:
    parts = " + ".join(f'"{index % 10}"' for index in range(400))
    assert values(call(f"Config(x={parts})", "Config"))["x"] == "0123456789" * 40


def test_warnings_of_the_parser_stay_quiet(recwarn: pytest.WarningsRecorder) -> None:
    read('x = "\\d"\nif x is "y": pass\n')
    assert not recwarn.list


def test_doubling_names_stay_small() -> None:
    code = "a = 'x'\n" + "a = a + a\n" * 60 + "Config(x=a)\n"
    assert values(call(code, "Config"))["x"] is not None
