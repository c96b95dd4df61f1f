"""JSON: values as Python's, spans exact, hostile input bounded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers import json as reader
from klaudit.readers.document import MappingNode, Node, ScalarNode, SequenceNode
from klaudit.readers.json import read_json
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.source import Source, UnreadableError


def plain(node: Node | None) -> object:
    if isinstance(node, MappingNode):
        return {entry.key: plain(entry.value) for entry in node.entries}
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return None if node is None else resolve_scalar(node, "json")


def check(text: str, node: Node) -> None:
    """The bytes of every node, read alone, are its value."""
    data = text.encode()
    assert json.loads(data[node.start : node.end]) == plain(node)
    if isinstance(node, MappingNode):
        for entry in node.entries:
            assert json.loads(data[entry.key_start : entry.key_end]) == entry.key
            check(text, entry.value)
    elif isinstance(node, SequenceNode):
        for item in node.items:
            check(text, item)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_dumped_values_are_read_back(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    node = read_json(Source("x.json", text.encode("utf-8", "replace"))).root
    assert node is not None
    if "\\ud" not in text:  # lone surrogates have no bytes
        assert plain(node) == json.loads(text.encode("utf-8", "replace"))
        check(text.encode("utf-8", "replace").decode(), node)


def test_duplicates_bom_and_special_numbers() -> None:
    node = read_json(Source("x.json", b'\xef\xbb\xbf{"a": 1, "a": NaN, "b": -Infinity}')).root
    assert isinstance(node, MappingNode)
    assert [entry.key for entry in node.entries] == ["a", "a", "b"]
    assert isinstance(node.get("a"), ScalarNode)
    assert plain(node.get("b")) == float("-inf")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "empty"),
        ('{\n"a": 1,\n}', 2, "comma before the closing }"),
        ('{\n"a": [1,\n2,]}', 3, "comma before the closing ]"),
        ('{\n// why\n"a": 1}', 2, "comment"),
        ('{"a": 1 /* why */}', 1, "comment"),
        ("{\n'a': 1}", 2, "double quotes"),
        ('{"a" 1}', 1, "expected :"),
        ('{"a": 01}', 1, "expected a value"),
        ('{"a": truely}', 1, "expected a value"),
        ('{"a": "x\ny"}', 1, "control character"),
        ('{"a": "\\x"}', 1, "escape"),
        ("[1 2]", 1, "expected , or ]"),
        ("[1]\n[2]", 2, "more text"),
        ("{", 1, "expected a key"),
        ("[1,", 1, "expected a value"),
    ],
)
def test_unreadable_texts_say_where(text: str, line: int, message: str) -> None:
    with pytest.raises(ValueError):  # so that no row here is JSON after all
        json.loads(text)
    with pytest.raises(UnreadableError, match=f"(?i){message}") as caught:
        read_json(Source("x.json", text.encode()))
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["[" * 10_000, '{"a":' * 10_000, "[" * 10_000 + "]" * 10_000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match="nested deeper"):
        read_json(Source("x.json", text.encode()))


def test_huge_files_are_data_not_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_NODES", 1000)
    with pytest.raises(UnreadableError, match="data, not a config"):
        read_json(Source("x.json", b"[" + b"1," * (reader.MAX_NODES + 1) + b"1]"))
