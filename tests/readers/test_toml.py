"""TOML: values as the standard library's, spans exact, hostile input bounded."""

from __future__ import annotations

import sys

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers.document import MappingNode, Node, ScalarNode, SequenceNode
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.toml import read_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = """\
# a comment with = and [
title = "TOML é" # why
"quoted key" = 'literal'
a.b.c = 1_000
a."d e" = [ 1, 2, # inside
  [ "x", ], { y = 1.5, z.w = true } ]

[tool.klaudit] # head
select = ["KLA1", 'KLA2']
when = 1979-05-27 07:32:00
block = \"\"\"
two
lines \\
   joined\"\"\"\"\"
raw = '''it's'''

[[steps]]
name = "one"
[steps.inner]
x = inf
[[steps]]
name = "two"

[tool]
late = 0x10
"""


def plain(node: Node | None) -> object:
    if isinstance(node, MappingNode):
        return {entry.key: plain(entry.value) for entry in node.entries}
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return None if node is None else resolve_scalar(node, "toml")


def dates_as_text(value: object) -> object:
    if isinstance(value, dict):
        return {key: dates_as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [dates_as_text(inner) for inner in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def check(data: bytes, node: Node) -> None:
    """The bytes of every key and scalar, read alone, are what the tree says."""
    if isinstance(node, MappingNode):
        for entry in node.entries:
            key = data[entry.key_start : entry.key_end].decode()
            assert tomllib.loads(f"{key} = 1") == {entry.key: 1}
            check(data, entry.value)
    elif isinstance(node, SequenceNode):
        for item in node.items:
            check(data, item)
    else:
        value = tomllib.loads(f"v = {data[node.start : node.end].decode()}")["v"]
        assert dates_as_text(value) == plain(node)


def test_structure_and_spans() -> None:
    node = read_toml(Source("x.toml", TEXT.encode())).root
    assert isinstance(node, MappingNode)
    assert plain(node) == dates_as_text(tomllib.loads(TEXT))
    check(TEXT.encode(), node)


def test_quoted_scalars_are_text_even_where_they_look_like_numbers() -> None:
    node = read_toml(Source("x.toml", b"a = '1'")).root
    assert isinstance(node, MappingNode)
    assert node.entries[0].value == ScalarNode("1", False, 4, 7)


def test_bom_crlf_and_emptiness() -> None:
    assert plain(read_toml(Source("x.toml", b"")).root) == {}
    node = read_toml(Source("x.toml", b"\xef\xbb\xbfa = 1\r\n[b]\r\nc = 2\r\n")).root
    assert plain(node) == {"a": 1, "b": {"c": 2}}
    assert isinstance(node, MappingNode)
    assert (node.entries[0].key_start, node.entries[0].value.start) == (3, 7)


keys = st.text("abé.# ", min_size=1, max_size=3)
values = st.recursive(
    st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(keys, values, max_size=4))
def test_dumped_values_are_read_back(value: dict[str, object]) -> None:
    text = tomlkit.dumps(value)
    node = read_toml(Source("x.toml", text.encode())).root
    assert isinstance(node, MappingNode)
    assert plain(node) == tomllib.loads(text)
    check(text.encode(), node)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a = 1\nb = \n", 2, "not TOML"),
        ("a = 1\na = 2\n", 2, "not TOML"),
        ("[a\n", 1, "not TOML"),
        ("a = off\n", 1, "not TOML"),
    ],
)
def test_unreadable_texts_say_where(text: str, line: int, message: str) -> None:
    with pytest.raises(UnreadableError, match=message) as caught:
        read_toml(Source("x.toml", text.encode()))
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 10_000,
        "a = " + "[" * 10_000 + "]" * 10_000,
        "a" + ".a" * 10_000 + " = 1",
        "[a" + ".a" * 10_000 + "]",
        "a = " + "[" * 300 + "]" * 300,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match="nested deeper"):
        read_toml(Source("x.toml", text.encode()))
