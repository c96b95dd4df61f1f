"""Places as machines are told: from the root of the repository, in UTF-16 code units, on one line."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers.source import Source
from klaudit.reports import View
from klaudit.reports.places import Region, exact_region, region, repository_path, uri


def at(text: str, part: str) -> Region:
    source = Source("f", text.encode())
    start = source.data.index(part.encode())
    return region(source.span(start, start + len(part.encode())), source)


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("kl=1", "1", Region(1, 4, 1, 5)),
        ("a\n\tkl=1", "kl=1", Region(2, 2, 2, 6)),
        ("奖励 kl=1", "kl", Region(1, 4, 1, 6)),
        ("\U0001f600 kl=\U0001d518!", "kl=\U0001d518", Region(1, 4, 1, 9)),
        ("\ufeffkl=1", "kl", Region(1, 1, 1, 3)),
        ("a\n\ufeffkl=1", "kl", Region(2, 2, 2, 4)),
        ("a\r\nkl=1\r\n", "kl=1", Region(2, 1, 2, 5)),
        ("é kl", "kl", Region(1, 3, 1, 5)),
    ],
)
def test_columns_count_utf_16_units_and_no_byte_order_mark(text: str, part: str, expected: Region) -> None:
    assert at(text, part) == expected


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("x --kl \\\n   0.1", "--kl \\\n   0.1", Region(1, 3, 1, 7)),
        ("f(\n  beta=1,\n)", "f(\n  beta=1,\n)", Region(1, 1, 1, 3)),
        ("f(  \r\n 1)", "f(  \r\n 1)", Region(1, 1, 1, 3)),
        ("a\nb", "\nb", Region(2, 1, 2, 2)),
        ("c = [\n    'a', \n  'b']", "[\n    'a', \n  'b']", Region(2, 5, 2, 9)),
        ("x [\n ]", "[\n ]", Region(1, 3, 1, 4)),
        ("kl=1\\", "kl=1\\", Region(1, 1, 1, 6)),
    ],
)
def test_of_several_lines_the_first_is_told_without_what_goes_on(text: str, part: str, expected: Region) -> None:
    assert at(text, part) == expected


def test_a_file_that_is_gone_or_shorter_now_leaves_what_was_read() -> None:
    span = Source("f", b"abc\n  kl=1").span(6, 10)
    assert region(span, None) == Region(2, 3, 2, 7)
    assert region(span, Source("f", b"")) == Region(2, 3, 2, 7)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab \t\n\\é\U0001f600\ufeff"), max_size=12), st.integers(0, 30), st.integers(0, 30))
def test_a_region_lies_on_one_line_and_within_it(text: str, start: int, length: int) -> None:
    data = text.encode()
    offsets = [len(text[:at].encode()) for at in range(len(text) + 1)]
    first = offsets[min(start, len(text))]
    last = offsets[min(start + length, len(text))]
    source = Source("f", data)
    found = region(source.span(first, last), source)
    line = text.split("\n")[found.line - 1]
    width = len((line.removeprefix("\ufeff") if found.line == 1 else line).encode("utf-16-le")) // 2
    assert found.line == found.end_line
    assert 1 <= found.column <= found.end_column <= width + 1


def test_an_edit_is_told_whole() -> None:
    source = Source("f", "é\n\U0001f600b\nc".encode())
    assert exact_region(0, len(source.data), source) == Region(1, 1, 3, 2)
    assert exact_region(3, 8, source) == Region(2, 1, 2, 4)
    assert exact_region(2, 3, source) == Region(1, 2, 2, 1)


@pytest.mark.parametrize(
    ("prefix", "path", "expected"),
    [
        ("", "a/b.sh", "a/b.sh"),
        ("examples/", "b.sh", "examples/b.sh"),
        ("", "../b.sh", None),
        ("", "/etc/passwd", None),
        ("a/", "../../b", None),
        ("a/", "../b", "b"),
        ("", "..", None),
        ("", ".", None),
    ],
)
def test_paths_are_those_of_the_repository_or_none(prefix: str, path: str, expected: str | None) -> None:
    assert repository_path(path, View(repository_prefix=prefix)) == expected


_REFERENCE = re.compile(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*")


@given(st.text(max_size=10))
def test_a_uri_is_relative_and_says_the_path_again(path: str) -> None:
    assert _REFERENCE.fullmatch(uri(path))
    assert unquote(uri(path), errors="strict") == path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a b/c#d?.sh", "a%20b/c%23d%3F.sh"),
        ("c:/x", "c%3A/x"),
        ("100%.sh", "100%25.sh"),
        ("奖.sh", "%E5%A5%96.sh"),
        (b"\xff.sh".decode("utf-8", "surrogateescape"), "%EF%BF%BD.sh"),
        ("\ud800", "%EF%BF%BD"),
    ],
)
def test_odd_names_are_encoded(path: str, expected: str) -> None:
    assert uri(path) == expected
